// The program itself, run as a person runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/text_layout.h"
#include "test/support/files.h"
#include "test/support/shared.h"
#include "test/support/temp_tree.h"

namespace agent {
namespace {

using test::Lines;
using test::Slurp;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

int RunShell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What a killed server leaves: a socket that nobody listens on.
void LeaveSocketBehind(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  close(server);
}

// Runs `command` with a clean environment in a UTF-8 locale.
Result RunCommand(const std::string& command, const std::string& variables = "") {
  const test::TempTree files;
  Result result;
  result.exit_code = RunShell("env -i PATH=\"$PATH\" TMPDIR=/tmp LANG=C.UTF-8 " + variables + " " +
                              command + " >" + files.Path("out") + " 2>" + files.Path("err"));
  result.out = Slurp(files.Path("out"));
  result.err = Slurp(files.Path("err"));
  return result;
}

Result DryRun(const std::string& arguments, const std::string& variables = "") {
  return RunCommand(std::string(PLUMBLINE_AGENT) + " --dry-run " + arguments, variables);
}

// The node that the demo shows, without its kubelet's socket.
class Program : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    node = new test::TempTree();
    ASSERT_EQ(RunShell("bash demo/machine/lay-down " + node->root()), 0);
  }
  static void TearDownTestSuite() {
    delete node;
    node = nullptr;
  }
  static std::string Root() { return "--root " + node->root() + " --node-name gpu-demo "; }
  static std::string Answers() { return "--podresources " + node->Path("answers.json") + " "; }

  static test::TempTree* node;
};
test::TempTree* Program::node = nullptr;

TEST_F(Program, ShowsPodsFromRecordedReplies) {
  const Result result = DryRun(Root() + Answers());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* text : {"NUMA node 0", "NUMA node 1", "ml/train-0", "aligned", "ml/llm-0",
                           "misaligned", "spread", "unpinned", "NVIDIA H100"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST_F(Program, WritesBothObjectsAsYamlAndAsJson) {
  const Result yaml = DryRun(Root() + Answers() + "-o yaml");
  EXPECT_EQ(yaml.exit_code, 0) << yaml.err;
  EXPECT_THAT(yaml.out, HasSubstr("kind: NodeResourceTopology"));
  EXPECT_THAT(yaml.out, HasSubstr("kind: NodePlacement"));
  EXPECT_THAT(yaml.out, HasSubstr("\n---\n"));
  const Result json = DryRun(Root() + Answers() + "-o json");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(json.out, StartsWith("{"));
  EXPECT_THAT(json.out, HasSubstr("NodeResourceTopology"));
  EXPECT_THAT(json.out, HasSubstr("NodePlacement"));
}

TEST_F(Program, WritesOneObjectAlone) {
  const Result nrt = DryRun(Root() + Answers() + "-o nrt");
  EXPECT_THAT(nrt.out, HasSubstr("kind: NodeResourceTopology"));
  EXPECT_THAT(nrt.out, Not(HasSubstr("NodePlacement")));
  const Result placement = DryRun(Root() + Answers() + "-o placement");
  EXPECT_THAT(placement.out, HasSubstr("kind: NodePlacement"));
  EXPECT_THAT(placement.out, Not(HasSubstr("kind: NodeResourceTopology")));
}

TEST_F(Program, ShowsTheHardwareWhereThereIsNoKubelet) {
  const Result result = DryRun(Root());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Hardware only, no kubelet"));
  EXPECT_THAT(result.out, HasSubstr("--podresources"));
  EXPECT_THAT(result.out, HasSubstr("NVIDIA H100"));
  const Result nrt = DryRun(Root() + "-o nrt");
  EXPECT_EQ(nrt.exit_code, 0);
  EXPECT_EQ(nrt.out, "");
  EXPECT_THAT(nrt.err, HasSubstr("no kubelet"));
}

TEST_F(Program, LeavesWithCode1IfTheSocketIsThereAndNobodyAnswers) {
  test::TempTree left_over;
  const std::string socket = left_over.Path("s");
  LeaveSocketBehind(socket);
  const Result result = DryRun(Root() + "--podresources " + socket);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("NUMA node 1"));
  EXPECT_THAT(result.out, HasSubstr("did not answer"));
}

TEST_F(Program, SendsNoControlSequenceToTheTerminalOnStderr) {
  for (const std::string arguments :
       {"--root \"$(printf '/no/\\033[31m\\nsuch')\"", "\"$(printf -- '--x\\033[31m')\""}) {
    const Result wrong = DryRun(arguments);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.err, Not(HasSubstr("\x1b")));
    EXPECT_EQ(Lines(wrong.err).size(), 1U) << wrong.err;
  }
}

TEST_F(Program, LeavesWithCode1IfStdoutIsClosed) {
  const Result result =
      RunCommand("sh -c '" PLUMBLINE_AGENT " --dry-run " + Root() + Answers() + " >&-'");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write"));
}

TEST_F(Program, KeepsItsExitCodeIfNobodyReadsStderr) {
  EXPECT_EQ(RunShell(PLUMBLINE_AGENT " --dry-run --root /no/such 2>/dev/full"), 2);
  EXPECT_EQ(RunShell(PLUMBLINE_AGENT " --dry-run --root /no/such 2>&-"), 2);
}

TEST_F(Program, GoesOnPublishingIfNobodyReadsItsLog) {
  test::TempTree files;
  files.Put("config",
            "{current-context: x, contexts: [{name: x, context: {cluster: x}}], "
            "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]}");
  constexpr int kToldToStop = 124;  // by timeout
  EXPECT_EQ(RunShell("bash -c 'timeout 3 " PLUMBLINE_AGENT " " + Root() + "--kubeconfig " +
                     files.Path("config") + " 2>&1 | true; exit ${PIPESTATUS[0]}'"),
            kToldToStop);
}

// The links of a recorded tree, and its kubelet's --root-dir, mean the recorded machine's files.
TEST_F(Program, DoesNotAskAKubeletOutsideOfTheTree) {
  test::TempTree outside;
  LeaveSocketBehind(outside.Path("kubelet.sock"));
  const test::TempTree copy;
  ASSERT_EQ(RunShell("cp -a " + node->root() + "/. " + copy.root()), 0);
  const std::string folder = copy.Path("var/lib/kubelet/pod-resources");
  for (const std::string& target : {outside.root(), "../../../../../../.." + outside.root()}) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_symlink(target, folder);
    const Result result = DryRun("--root " + copy.root());
    EXPECT_EQ(result.exit_code, 0) << result.out;
    EXPECT_THAT(result.out, HasSubstr("no kubelet at"));
  }
}

TEST_F(Program, LeavesWithCode2AndOneLineOnWrongInput) {
  test::TempTree files;
  files.Put("broken.json", "{\"list\": 3").Put("no.xml", "<html/>");
  const std::vector<std::string> wrong = {"--root /no/such/root",
                                          "--topology-xml /no/such.xml",
                                          "--topology-xml " + files.Path("no.xml"),
                                          Root() + "--podresources /no/such.sock",
                                          Root() + "--podresources " + files.Path("broken.json"),
                                          Root() + "--kubelet-config /no/such.yaml",
                                          Root() + "--podresources ''",
                                          "-o picture",
                                          "--no-such-option"};
  for (const std::string& arguments : wrong) {
    const Result result = DryRun(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(Lines(result.err).size(), 1U) << arguments << ": " << result.err;
  }
}

TEST_F(Program, ColoursOnlyWhenAskedTo) {
  EXPECT_THAT(DryRun(Root()).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(DryRun(Root() + "--color always").out, HasSubstr("\x1b["));
  const std::string on_terminal =
      "script -qec '" + std::string(PLUMBLINE_AGENT) + " --dry-run " + Root() + "' /dev/null";
  if (RunShell("command -v script >/dev/null") != 0) GTEST_SKIP() << "no script(1) for a terminal";
  EXPECT_THAT(RunCommand(on_terminal, "TERM=xterm").out, HasSubstr("\x1b["));
  EXPECT_THAT(RunCommand(on_terminal, "TERM=xterm NO_COLOR=1").out, Not(HasSubstr("\x1b")));
}

TEST_F(Program, AsciiHasOnlyAscii) {
  for (const Result& result :
       {DryRun(Root() + Answers() + "--ascii"), DryRun(Root() + Answers(), "LANG=C")}) {
    EXPECT_NE(result.out, "");
    EXPECT_TRUE(std::ranges::all_of(result.out,
                                    [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  }
}

TEST_F(Program, DoesNotMixThisHostsKubeletWithAnotherMachinesXml) {
  SKIP_WITHOUT_SHARED();
  const std::string xml =
      "--topology-xml " + *test::SharedFolder() + "/machines/hwloc/xml/nvidiaDGX2.xml ";
  EXPECT_THAT(DryRun(xml).out, HasSubstr("no kubelet asked"));
  EXPECT_EQ(DryRun(xml + "--kubelet-config /x").exit_code, 2);
  EXPECT_THAT(DryRun(xml + Answers()).out, HasSubstr("ml/llm-0"));
}

TEST_F(Program, DemoShowsPodsAndCleansUp) {
  const test::TempTree temporary;
  const Result result =
      RunCommand("bash demo/run-demo " PLUMBLINE_BIN, "TMPDIR=" + temporary.root());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("gpu-demo"));
  EXPECT_THAT(result.out, HasSubstr("1 misaligned"));
  EXPECT_THAT(result.out, HasSubstr("1 spread"));
  EXPECT_THAT(result.out, HasSubstr("1 unpinned"));
  EXPECT_THAT(result.out, Not(HasSubstr("Not known, or in doubt")));
  EXPECT_TRUE(std::filesystem::is_empty(temporary.root()));
}

// Every machine there is: it must be shown, in 80 columns, or refused in words.
class RecordedMachines : public testing::TestWithParam<std::string> {};

void ExpectShown(const std::string& arguments) {
  const Result result = DryRun(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("NUMA node"));
  for (const std::string& line : Lines(result.out)) EXPECT_LE(base::Width(line), 80) << line;
  EXPECT_LE(Lines(result.out).size(), 400U);
}

TEST_P(RecordedMachines, AreShownIn80Columns) {
  SKIP_WITHOUT_SHARED();
  for (const std::string& file : test::SharedFiles(GetParam(), "")) {
    SCOPED_TRACE(file);
    if (file.ends_with(".xml")) {
      ExpectShown("--topology-xml " + *test::SharedFolder() + "/" + file);
    } else if (file.find(".tar") != std::string::npos) {
      const test::TempTree tree;
      ExpectShown("--root " + test::UnpackShared(file, tree));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Program, RecordedMachines,
                         testing::Values("machines/synthetic", "machines/hwloc/fsroot",
                                         "machines/hwloc/xml", "machines/real/sysfs",
                                         "machines/real/lstopo-xml"));

}  // namespace
}  // namespace agent
