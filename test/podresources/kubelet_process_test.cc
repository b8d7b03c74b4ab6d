#include "podresources/kubelet_process.h"

#include <string>

#include "podresources/kubelet_flags.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "a b c" as /proc/<pid>/cmdline has it.
std::string CommandLine(std::string words) {
  for (char& c : words) {
    if (c == ' ') c = '\0';
  }
  return words + '\0';
}

// The first 22 fields of /proc/<pid>/stat.
std::string Stat(int pid, const std::string& name, long ticks) {
  return std::to_string(pid) + " (" + name + ") S 1 1 1 0 -1 4194560 9 0 0 0 5 3 0 0 20 0 14 0 " +
         std::to_string(ticks) + " 1267167232 23000\n";
}

TEST(RecognizeKubelet, KnowsTheProgramsThatAreOne) {
  using Kind = KubeletProcess::Kind;
  const auto kind = [](std::vector<std::string> words) -> std::optional<Kind> {
    const auto process = RecognizeKubelet(std::move(words));
    return process ? std::optional(process->kind) : std::nullopt;
  };
  EXPECT_EQ(kind({"kubelet"}), Kind::kKubelet);
  EXPECT_EQ(kind({"/usr/bin/kubelet", "--v=2"}), Kind::kKubelet);
  EXPECT_EQ(kind({"/hyperkube", "kubelet"}), Kind::kKubelet);
  EXPECT_EQ(kind({"/snap/microk8s/1/kubelite"}), Kind::kKubelite);
  EXPECT_EQ(kind({"/usr/local/bin/k3s", "server"}), Kind::kEmbedded);
  EXPECT_EQ(kind({"rke2", "agent"}), Kind::kEmbedded);
  EXPECT_EQ(kind({}), std::nullopt);
  EXPECT_EQ(kind({"/hyperkube", "proxy"}), std::nullopt);
  EXPECT_EQ(kind({"k3s", "kubectl"}), std::nullopt);
  EXPECT_EQ(kind({"k0s", "worker"}), std::nullopt);
  EXPECT_EQ(kind({"vim", "kubelet"}), std::nullopt);
  EXPECT_EQ(kind({"kubelet-csr-approver"}), std::nullopt);
}

TEST(RecognizeKubelet, GivesTheKubeletsOwnArguments) {
  EXPECT_THAT(RecognizeKubelet({"hyperkube", "kubelet", "--v=2"})->arguments, ElementsAre("--v=2"));
  EXPECT_THAT(RecognizeKubelet({"kubelet", "--v=2"})->arguments, ElementsAre("--v=2"));
}

TEST(SplitCommandLine, SplitsATitleThatAProgramWroteOverItsArguments) {
  EXPECT_THAT(SplitCommandLine(std::string("/usr/bin/k3s server\0\0\0\0", 23)),
              ElementsAre("/usr/bin/k3s", "server"));
  EXPECT_THAT(SplitCommandLine(std::string("kubelet\0--a=b c\0", 16)),
              ElementsAre("kubelet", "--a=b c"));
  EXPECT_THAT(SplitCommandLine(""), IsEmpty());
}

TEST(FindKubelet, GivesPidArgumentsDirectoryAndStart) {
  test::TempTree tree;
  tree.Put("proc/stat", "cpu  1 2\nbtime 1764000000\nprocesses 5\n")
      .Put("proc/7/cmdline", CommandLine("/sbin/init kubelet"))
      .Put("proc/911/cmdline", CommandLine("/usr/bin/kubelet --config k.yaml"))
      .Put("proc/911/stat", Stat(911, "kube) let", 250))
      .Link("proc/911/cwd", "/srv")
      .Put("proc/sys/x", "");
  const KubeletSearch search = FindKubelet(tree.Open());
  ASSERT_TRUE(search.process);
  EXPECT_EQ(search.process->pid, 911);
  EXPECT_THAT(search.process->arguments, ElementsAre("--config", "k.yaml"));
  EXPECT_EQ(search.process->directory, "/srv");
  EXPECT_EQ(base::FormatTime(*search.process->started_at), "2025-11-24T16:00:02.500Z");
  EXPECT_THAT(search.diagnostics, IsEmpty());
}

TEST(FindKubelet, PrefersAProcessOfItsOwnToASupervisorThatStartedBefore) {
  test::TempTree tree;
  tree.Put("proc/10/cmdline", CommandLine("/usr/bin/rke2 server"))
      .Put("proc/10/stat", Stat(10, "rke2", 100))
      .Put("proc/20/cmdline", CommandLine("/var/lib/rancher/rke2/data/v1/bin/kubelet --v=2"))
      .Put("proc/20/stat", Stat(20, "kubelet", 900));
  EXPECT_EQ(FindKubelet(tree.Open()).process->pid, 20);
}

TEST(FindKubelet, TakesTheFirstStartedOfSeveralAndSaysSo) {
  test::TempTree tree;
  tree.Put("proc/30/cmdline", CommandLine("kubelet --version"))
      .Put("proc/30/stat", Stat(30, "kubelet", 5000))
      .Put("proc/400/cmdline", CommandLine("kubelet --config=/a"))
      .Put("proc/400/stat", Stat(400, "kubelet", 60))
      .Put("proc/5/cmdline", CommandLine("kubelet --config=/b"));  // no readable start
  const KubeletSearch search = FindKubelet(tree.Open());
  EXPECT_EQ(search.process->pid, 400);
  ASSERT_EQ(search.diagnostics.size(), 1);
  EXPECT_EQ(search.diagnostics[0].code, "SeveralKubelets");
  EXPECT_EQ(search.diagnostics[0].message,
            "3 processes are kubelets; the one that started first, pid 400, is read");
}

TEST(FindKubelet, GoesByTheKernelsNameWhereTheFirstArgumentIsAnother) {
  test::TempTree tree;
  tree.Put("proc/12/cmdline", CommandLine("/opt/k8s/node-agent --v=2"))
      .Put("proc/12/comm", "kubelet\n");
  EXPECT_EQ(FindKubelet(tree.Open()).process->pid, 12);
}

TEST(StartTicks, TellOneRunFromAnotherAndThatThereIsNone) {
  test::TempTree tree;
  tree.Put("proc/911/stat", Stat(911, "kubelet", 250));
  EXPECT_EQ(StartTicks(tree.Open(), 911), 250);
  EXPECT_EQ(StartTicks(tree.Open(), 912), std::nullopt);
}

TEST(FindKubelet, WithoutAStartTimeStillGivesTheProcess) {
  test::TempTree tree;
  tree.Put("proc/12/cmdline", CommandLine("kubelet")).Put("proc/12/stat", "12 (kubelet");
  const KubeletSearch search = FindKubelet(tree.Open());
  EXPECT_EQ(search.process->pid, 12);
  EXPECT_EQ(search.process->started_at, std::nullopt);
}

TEST(FindKubelet, WithoutAProcessTableSaysThatItCannotLook) {
  test::TempTree tree;
  const KubeletSearch search = FindKubelet(tree.Open());
  EXPECT_FALSE(search.process);
  ASSERT_EQ(search.diagnostics.size(), 1);
  EXPECT_EQ(search.diagnostics[0].code, "ProcUnreadable");
}

TEST(KubeletFlags, AreReadInAllTheirSpellingsAndTheLastOneWins) {
  const KubeletFlags flags = ParseKubeletFlags(
      {"--config", "/a.yaml", "-config=/b.yaml", "--root-dir=/r", "--config_dir=/d", "--v", "2",
       "--topology_manager_policy=restricted", "--topology-manager-policy", "single-numa-node",
       "--cpu-manager-policy", "--", "--config=/c.yaml"});
  EXPECT_EQ(flags.config, "/b.yaml");
  EXPECT_EQ(flags.root_dir, "/r");
  EXPECT_EQ(flags.config_dir, "/d");
  EXPECT_EQ(flags.fields.at("topologyManagerPolicy").text, "single-numa-node");
  EXPECT_EQ(flags.flag_of.at("topologyManagerPolicy"), "--topology-manager-policy");
}

TEST(KubeletFlags, OfMapsAddUpOverSeveralUses) {
  const KubeletFlags flags = ParseKubeletFlags(
      {"--kube-reserved=cpu=100m,memory=1Gi", "--kube-reserved", "memory=2Gi, pid=7",
       "--eviction-hard=memory.available<100Mi,nodefs.available<10%",
       "--cpu-manager-policy-options=full-pcpus-only=true,x"});
  const auto& reserved = flags.fields.at("kubeReserved").map;
  EXPECT_EQ(reserved.at("cpu").text, "100m");
  EXPECT_EQ(reserved.at("memory").text, "2Gi");
  EXPECT_EQ(reserved.at("pid").text, "7");
  EXPECT_EQ(flags.fields.at("evictionHard").map.at("memory.available").text, "100Mi");
  // The kubelet splits this one at no comma.
  EXPECT_EQ(flags.fields.at("cpuManagerPolicyOptions").map.at("full-pcpus-only").text, "true,x");
}

TEST(KubeletFlags, OfReservedMemoryBecomeAList) {
  const KubeletFlags flags =
      ParseKubeletFlags({"--reserved-memory", "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=3Gi",
                         "--reserved-memory=8:memory=4Gi"});
  const auto& list = flags.fields.at("reservedMemory").list;
  ASSERT_EQ(list.size(), 3);
  EXPECT_EQ(list[0].Find("limits")->map.at("hugepages-1Gi").text, "2Gi");
  EXPECT_EQ(list[2].Find("numaNode")->text, "8");
}

TEST(ParseArgumentsFile, FillsInTheSnapsFolders) {
  EXPECT_THAT(ParseArgumentsFile("--root-dir=${SNAP_COMMON}/var/lib/kubelet\n# no\n\n"
                                 "--config $SNAP_DATA/k.yaml\n--fail-swap-on=false\r\n"),
              ElementsAre("--root-dir=/var/snap/microk8s/common/var/lib/kubelet",
                          "--config=/var/snap/microk8s/current/k.yaml", "--fail-swap-on=false"));
}

}  // namespace
}  // namespace podresources
