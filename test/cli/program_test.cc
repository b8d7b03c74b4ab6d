// The program itself, run as a person runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "test/support/files.h"
#include "test/support/shared.h"
#include "test/support/temp_tree.h"

namespace cli {
namespace {

using test::Slurp;
using testing::HasSubstr;
using testing::Not;

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Result RunCommand(const std::string& command, const std::string& variables = "") {
  const test::TempTree files;
  const int status = std::system(("env -i PATH=\"$PATH\" LANG=C.UTF-8 " + variables + " " +
                                  command + " >" + files.Path("out") + " 2>" + files.Path("err"))
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          Slurp(files.Path("out")), Slurp(files.Path("err"))};
}

TEST(Plumbline, SimulatesTheDemoFromAFileAndFromStandardInput) {
  const Result result = RunCommand(PLUMBLINE " simulate demo/simulate.yaml");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("3 pods: 2 admitted, 1 refused"));
  EXPECT_EQ(result.out, RunCommand("sh -c '" PLUMBLINE " simulate - <demo/simulate.yaml'").out);
}

TEST(Plumbline, ColoursOnlyWhenAskedTo) {
  const std::string command = PLUMBLINE " simulate demo/simulate.yaml";
  EXPECT_THAT(RunCommand(command).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(RunCommand(command + " --color always").out, HasSubstr("\x1b["));
}

TEST(Plumbline, LeavesWithCode2OnWrongInputAndWith1IfItCannotWrite) {
  const Result wrong = RunCommand(PLUMBLINE " simulate /no/such");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "plumbline simulate: cannot read /no/such\n");
  const Result closed = RunCommand("sh -c '" PLUMBLINE " simulate demo/simulate.yaml >&-'");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.err, HasSubstr("cannot write"));
}

TEST(Plumbline, AgreesWithTheRecordingsCheckedByHand) {
  SKIP_WITHOUT_SHARED();
  const Result result = RunCommand(std::string(PLUMBLINE) + " simulate --recorded " +
                                   *test::SharedFolder() + "/admission/named.jsonl.gz");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("affinities              74 of 74\n"));
}

TEST(Plumbline, ReplaysALedgersLogStepByStep) {
  const Result result = RunCommand(PLUMBLINE " replay test/cli/ledger.jsonl");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr(R"(     5 2026-11-29T12:00:01.050Z PodBound: ml/llm-0 on gpu-7, Pending
       gpu-7 Observed: free 0: 4 cpu 1 gpu 24Gi memory, 1: 8 cpu 2 gpu 32Gi memory
         ml/llm-0 Bound, NUMA 0
)"));
  EXPECT_THAT(result.out, HasSubstr("ForeignPod ml/llm-1: it was bound without us\n"));
  EXPECT_THAT(result.out, HasSubstr("no such pod until 2026-11-29T12:05:03.500Z: "
                                    "TopologyAffinityError\n"));
  EXPECT_THAT(result.out, HasSubstr("gpu-7 Stale: free"));
  EXPECT_THAT(result.out, HasSubstr("\n     1 ForeignPod\n"));
}

TEST(Plumbline, ReplaysOneNodeAndAsJson) {
  const Result other = RunCommand(PLUMBLINE " replay test/cli/ledger.jsonl --node gpu-8");
  EXPECT_THAT(other.out, Not(HasSubstr("gpu-7")));
  const Result json = RunCommand(PLUMBLINE " replay test/cli/ledger.jsonl -o json");
  EXPECT_THAT(json.out,
              HasSubstr(R"("waiting":[{"uid":"uid-0","standing":"Bound","numaNodes":"0"}])"));
  EXPECT_THAT(json.out, HasSubstr(R"("divergences":[{"kind":")"));
}

TEST(Plumbline, NamesTheLineOfALogThatItCannotRead) {
  const Result wrong = RunCommand(PLUMBLINE " replay demo/simulate.yaml");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("plumbline replay: demo/simulate.yaml line 1: no JSON object"));
  EXPECT_EQ(RunCommand(PLUMBLINE " replay /no/such").exit_code, 2);
}

}  // namespace
}  // namespace cli
