#include "base/cpu_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "test/support/status.h"

namespace base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> Ids(const CpuSet& set) { return {set.begin(), set.end()}; }

CpuSet FromIds(const std::set<int>& ids) {
  CpuSet set;
  for (const int id : ids) set.Insert(id);
  return set;
}

std::set<int> AnyIds() {
  auto ids = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 300));
  return ids;
}

TEST(CpuSet, ReadsTheKernelsListFormat) {
  ASSERT_OK_AND_ASSIGN(const CpuSet set, CpuSet::Parse("0-2,5-6,10-12,15\n"));
  EXPECT_THAT(Ids(set), ElementsAre(0, 1, 2, 5, 6, 10, 11, 12, 15));
  EXPECT_EQ(set.ToString(), "0-2,5-6,10-12,15");
}

TEST(CpuSet, ReadsABlankListAsTheEmptySetAndNotAsCpu0) {
  for (const std::string_view list : {"", "\n", " \t\n"}) {
    ASSERT_OK_AND_ASSIGN(const CpuSet set, CpuSet::Parse(list));
    EXPECT_TRUE(set.empty()) << '"' << list << '"';
    EXPECT_EQ(set.First(), -1);
  }
}

TEST(CpuSet, HoldsMoreThan1024Cpus) {
  ASSERT_OK_AND_ASSIGN(const CpuSet set, CpuSet::Parse("0-2047"));
  EXPECT_EQ(set.size(), 2048);
  EXPECT_TRUE(set.Contains(2047));
  EXPECT_FALSE(set.Contains(2048));
}

TEST(CpuSet, RefusesDamagedListsAndNamesThePart) {
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(CpuSet::Parse("0-2,x"), test::StatusIs(code, HasSubstr("\"x\" is no id")));
  EXPECT_THAT(CpuSet::Parse("3-1"), test::StatusIs(code, HasSubstr("runs backwards")));
  EXPECT_THAT(CpuSet::Parse("1,,2"), test::StatusIs(code, HasSubstr("\"\" is no id")));
  EXPECT_THAT(CpuSet::Parse("1,"), test::StatusIs(code, HasSubstr("ends in a comma")));
  EXPECT_THAT(CpuSet::Parse("-1"), test::StatusIs(code, HasSubstr("is no id")));
  EXPECT_THAT(CpuSet::Parse("0-4294967295"), test::StatusIs(code, HasSubstr("is no id")));
  EXPECT_THAT(CpuSet::Parse("0-65536"), test::StatusIs(code, HasSubstr("above 65535")));
}

// A file of 1 MiB: bit by bit it would take minutes.
TEST(CpuSet, ReadsAListOfAHundredThousandWideRangesAtOnce) {
  std::string list;
  for (int i = 0; i < 130'000; ++i) list += "0-65535,";
  ASSERT_OK_AND_ASSIGN(const CpuSet cpus, CpuSet::Parse(list + "7"));
  EXPECT_EQ(cpus.size(), 65536);
}

TEST(CpuSet, ReadsRangesThatBeginAndEndAnywhereInAWord) {
  for (const char* list : {"0-63", "63-64", "1-62", "64-127", "5-200", "127-128", "3"}) {
    ASSERT_OK_AND_ASSIGN(const CpuSet cpus, CpuSet::Parse(list));
    EXPECT_EQ(cpus.ToString(), list);
  }
}

TEST(CpuSet, LeavesOutIdsThatCannotBe) {
  CpuSet set{1};
  EXPECT_FALSE(set.Insert(-1));
  EXPECT_FALSE(set.Insert(std::int64_t{1} << 40));
  EXPECT_EQ(set, CpuSet{1});
}

TEST(CpuSet, AgreesWithStdSetInEveryOperation) {
  EXPECT_TRUE(rc::check([] {
    const std::set<int> a = AnyIds();
    const std::set<int> b = AnyIds();
    std::set<int> both;
    std::set<int> common;
    std::set<int> rest;
    std::ranges::set_union(a, b, std::inserter(both, both.end()));
    std::ranges::set_intersection(a, b, std::inserter(common, common.end()));
    std::ranges::set_difference(a, b, std::inserter(rest, rest.end()));
    RC_ASSERT((FromIds(a) | FromIds(b)) == FromIds(both));
    RC_ASSERT((FromIds(a) & FromIds(b)) == FromIds(common));
    RC_ASSERT((FromIds(a) - FromIds(b)) == FromIds(rest));
    RC_ASSERT(FromIds(a).IsSubsetOf(FromIds(b)) == rest.empty());
    RC_ASSERT(FromIds(a).size() == static_cast<int>(a.size()));
    RC_ASSERT((FromIds(a) < FromIds(b)) ==
              std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()));
  }));
}

TEST(CpuSet, ReadsBackWhatItWrote) {
  EXPECT_TRUE(rc::check([] {
    const CpuSet set = FromIds(AnyIds());
    RC_ASSERT(*CpuSet::Parse(set.ToString()) == set);
  }));
}

TEST(CpuSet, IsEqualHoweverItCameToBe) {
  CpuSet set{1, 200};
  set.Erase(200);
  EXPECT_EQ(set, CpuSet{1});
  set.Erase(1);
  EXPECT_EQ(set, CpuSet());
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace base
