#include "hwinfo/numa_stat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace hwinfo {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(NumaStat, SumsWhatIsResidentInV2AndNothingTwice) {
  const auto bytes = ParseNumaStat(
      "anon N0=1000 N1=0\n"
      "file N0=200 N1=7000\n"
      "kernel_stack N0=30 N1=0\n"
      "pagetables N0=4 N1=0\n"
      "sec_pagetables N0=0 N1=500\n"
      "shmem N0=200 N1=7000\n"  // part of file
      "anon_thp N0=900 N1=0\n"  // part of anon
      "inactive_anon N0=1000 N1=0\n"
      "slab_reclaimable N0=1 N1=60\n"
      "slab_unreclaimable N0=2 N1=0\n"
      "workingset_refault_anon N0=99999 N1=99999\n"  // events
      "pgdemote_kswapd N0=99999 N1=99999\n");
  ASSERT_OK(bytes);
  EXPECT_THAT(*bytes, ElementsAre(Pair(0, 1237), Pair(1, 7560)));
}

TEST(NumaStat, CountsPagesInV1WithTheCgroupsBelow) {
  const auto bytes = ParseNumaStatV1(
      "total=44611 N0=32631 N1=7501\n"
      "file=44428 N0=32614 N1=7335\n"
      "anon=183 N0=17 N1=166\n"
      "unevictable=0 N0=0 N1=0\n"
      "hierarchical_total=768133 N0=700000 N1=68133\n"
      "hierarchical_file=574135 N0=500000 N1=74135\n",
      4096);
  ASSERT_OK(bytes);
  EXPECT_THAT(*bytes, ElementsAre(Pair(0, 700000LL * 4096), Pair(1, 68133LL * 4096)));
  EXPECT_THAT(ParseNumaStatV1("total=9 N0=2 N8=7\n", 65536).value(),
              ElementsAre(Pair(0, 2 * 65536), Pair(8, 7 * 65536)))
      << "kernels without the hierarchical lines";
}

TEST(NumaStat, KnowsNodesAbove255AndLeavesOutThoseThatHoldNothing) {
  EXPECT_THAT(ParseNumaStat("anon N0=0 N63=0 N250=1 N1023=2\n").value(),
              ElementsAre(Pair(250, 1), Pair(1023, 2)));
  EXPECT_THAT(ParseNumaStat("anon\nfile\n").value(), IsEmpty());
}

TEST(NumaStat, SkipsLinesOfOtherKinds) {
  EXPECT_THAT(ParseNumaStatV1("numa_locality 0 0 0\ntotal=1 N0=1\nnuma_exectime 5\n", 4096).value(),
              ElementsAre(Pair(0, 4096)));
  EXPECT_THAT(ParseNumaStat("\n\nrubbish\nanon N0=1\nshmem N0=x\n").value(),
              ElementsAre(Pair(0, 1)));
}

TEST(NumaStat, RefusesADamagedFileInsteadOfTakingItForAnEmptyCgroup) {
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseNumaStat(""), test::StatusIs(code, HasSubstr("no line of resident memory")));
  EXPECT_THAT(ParseNumaStatV1("", 4096), test::StatusIs(code, HasSubstr("no total")));
  for (const char* counts : {"N0=x", "N0", "0=1", "N-1=1", "N0=-1", "N99999999999=1", "N65536=1"}) {
    EXPECT_THAT(ParseNumaStat(std::string("anon ") + counts + "\n"),
                test::StatusIs(code, HasSubstr(counts)));
  }
  EXPECT_THAT(ParseNumaStat("anon N0=9223372036854775807\nfile N0=1\n"),
              test::StatusIs(code, HasSubstr("more than memory can be")));
  EXPECT_THAT(ParseNumaStatV1("total=1 N0=9223372036854775807\n", 4096),
              test::StatusIs(code, HasSubstr("more than memory can be")));
}

}  // namespace
}  // namespace hwinfo
