#include "podresources/kubelet_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "podresources/kubelet_state.h"
#include "podresources/kubelet_yaml.h"
#include "test/support/shared.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::string kHeader =
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

auto HasCode(const std::string& code) { return Contains(Field(&base::Diagnostic::code, code)); }

template <class T>
Sourced<T> From(T value, ConfigSource source, const std::string& where) {
  return {std::move(value), source, where};
}
Sourced<std::string> Default(const std::string& value) {
  return {value, ConfigSource::kDefault, "default of kubelet v1.37"};
}

class KubeletConfigTest : public testing::Test {
 protected:
  // A kubelet with these flags, "--a=b --c=d"; started in 2033, after the test's files.
  void RunKubelet(const std::string& flags) { RunProcess("/usr/bin/kubelet " + flags); }
  void RunProcess(std::string command_line, long boot_time = 2000000000) {
    for (char& c : command_line) c = c == ' ' ? '\0' : c;
    tree_.Remove("proc");
    tree_.Put("proc/stat", "btime " + std::to_string(boot_time) + "\n")
        .Put("proc/42/cmdline", command_line + '\0')
        .Put("proc/42/stat", "42 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n")
        .Link("proc/42/cwd", "/srv");
  }
  KubeletConfig Read(const KubeletConfigOptions& options = {}) {
    const absl::StatusOr<KubeletConfig> config = ReadKubeletConfig(tree_.Open(), options);
    EXPECT_OK(config);
    return config.ok() ? *config : KubeletConfig();
  }
  test::TempTree tree_;
};

TEST_F(KubeletConfigTest, OfAHostWithoutAKubeletIsUnknownAndSaysWhereItLooked) {
  tree_.Folder("proc");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.pid, std::nullopt);
  EXPECT_EQ(config.topology_policy, Sourced<std::string>());
  EXPECT_EQ(config.cpu_policy, Sourced<std::string>());
  EXPECT_EQ(config.topology_options, Sourced<Options>());
  EXPECT_EQ(config.reserved_memory_bytes, Sourced<std::int64_t>());
  EXPECT_THAT(config.diagnostics, HasCode("NoKubelet"));
  EXPECT_THAT(config.diagnostics, Contains(Field(&base::Diagnostic::message,
                                                 HasSubstr("/var/lib/kubelet/config.yaml"))));
}

TEST_F(KubeletConfigTest, OfAKubeletWithoutFileAndFlagsIsItsDefaults) {
  RunKubelet("--v=2");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.pid, 42);
  EXPECT_EQ(base::FormatTime(*config.started_at), "2033-05-18T03:33:25.000Z");
  EXPECT_EQ(config.topology_policy, Default("none"));
  EXPECT_EQ(config.topology_scope, Default("container"));
  EXPECT_EQ(config.cpu_policy, Default("none"));
  EXPECT_EQ(config.memory_policy, Default("None"));
  EXPECT_THAT(*config.topology_options.value, IsEmpty());
  EXPECT_TRUE(config.reserved_cpus.value->empty());
  EXPECT_EQ(config.reserved_cpu_milli.value, 0);
  // The eviction default comes with a configuration file only.
  EXPECT_EQ(config.reserved_memory_bytes.value, 0);
  EXPECT_EQ(config.root_dir, "/var/lib/kubelet");
  EXPECT_EQ(config.pod_logs_dir, "/var/log/pods");
  EXPECT_EQ(config.version, Sourced<std::string>());
  EXPECT_THAT(config.diagnostics, IsEmpty());
}

TEST_F(KubeletConfigTest, TakesEachValueFromTheFileThatTheKubeletNames) {
  RunKubelet("--config=/etc/k.yaml --root-dir=/data/kubelet");
  tree_.Put("etc/k.yaml", kHeader + R"(
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
topologyManagerPolicyOptions: {max-allowable-numa-nodes: "16", prefer-closest-numa-nodes: "true"}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
reservedSystemCPUs: "0,48"
memoryManagerPolicy: Static
kubeReserved: {cpu: 500m, memory: 1Gi}
systemReserved: {cpu: 1, memory: 100Mi}
reservedMemory:
- {numaNode: 1, limits: {memory: 200Mi}}
- {numaNode: 0, limits: {memory: 1Gi, hugepages-1Gi: 1Gi}}
featureGates: {PodLevelResourceManagers: true, Other: no}
podLogsDir: /data/logs
)");
  const KubeletConfig config = Read();
  const auto file = ConfigSource::kFile;
  EXPECT_EQ(config.topology_policy, From<std::string>("single-numa-node", file, "/etc/k.yaml"));
  EXPECT_EQ(config.topology_scope, From<std::string>("pod", file, "/etc/k.yaml"));
  EXPECT_THAT(*config.topology_options.value,
              ElementsAre(Pair("max-allowable-numa-nodes", "16"),
                          Pair("prefer-closest-numa-nodes", "true")));
  EXPECT_EQ(config.cpu_policy, From<std::string>("static", file, "/etc/k.yaml"));
  EXPECT_THAT(*config.cpu_options.value, ElementsAre(Pair("full-pcpus-only", "true")));
  EXPECT_EQ(config.reserved_cpus, From(base::CpuSet{0, 48}, file, "/etc/k.yaml"));
  EXPECT_EQ(config.reserved_cpu_milli, From<std::int64_t>(1500, file, "/etc/k.yaml"));
  EXPECT_EQ(config.memory_policy, From<std::string>("Static", file, "/etc/k.yaml"));
  EXPECT_THAT(
      *config.reserved_memory.value,
      ElementsAre(ReservedMemory{0, "hugepages-1Gi", 1 << 30}, ReservedMemory{0, "memory", 1 << 30},
                  ReservedMemory{1, "memory", 200 << 20}));
  EXPECT_EQ(config.reserved_memory_bytes,
            From<std::int64_t>((1 << 30) + (100 << 20) + (100 << 20), file, "/etc/k.yaml"));
  EXPECT_THAT(*config.feature_gates.value,
              ElementsAre(Pair("Other", "false"), Pair("PodLevelResourceManagers", "true")));
  EXPECT_EQ(config.root_dir, "/data/kubelet");
  EXPECT_EQ(config.pod_logs_dir, "/data/logs");
  EXPECT_THAT(config.diagnostics, IsEmpty());
}

TEST_F(KubeletConfigTest, ReadsJson) {
  RunKubelet("--config=/k.json");
  tree_.Put("k.json",
            R"({"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1",
    "topologyManagerPolicy":"restricted","evictionHard":{"memory.available":"1Gi"}})");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.value, "restricted");
  EXPECT_EQ(config.reserved_memory_bytes.value, 1 << 30);
}

TEST_F(KubeletConfigTest, FindsARelativeFileInTheKubeletsWorkingDirectory) {
  RunKubelet("--config k.yaml");
  tree_.Put("srv/k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  EXPECT_EQ(Read().topology_policy.where, "/srv/k.yaml");
}

TEST_F(KubeletConfigTest, LaysDropInsOverTheFileInTheOrderOfTheirNames) {
  RunKubelet("--config=/k.yaml --config-dir=/k.d");
  tree_.Put("k.yaml", kHeader + R"(
topologyManagerPolicy: best-effort
topologyManagerScope: pod
cpuManagerPolicy: static
kubeReserved: {memory: 1Gi, cpu: 1}
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
)");
  tree_.Put("k.d/20.conf", kHeader + "topologyManagerPolicy: restricted\n");
  tree_.Put("k.d/10.conf", kHeader + R"(
topologyManagerPolicy: single-numa-node
topologyManagerScope: null
kubeReserved: {memory: 2Gi}
reservedMemory: [{numaNode: 1, limits: {memory: 3Gi}}]
)");
  tree_.Put("k.d/15/a.conf", kHeader + "cpuManagerPolicy: none\n");
  tree_.Put("k.d/99.yaml", kHeader + "topologyManagerPolicy: none\n");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy,
            From<std::string>("restricted", ConfigSource::kFile, "/k.d/20.conf"));
  EXPECT_EQ(config.topology_scope, Default("container"));
  EXPECT_EQ(config.cpu_policy, From<std::string>("none", ConfigSource::kFile, "/k.d/15/a.conf"));
  EXPECT_EQ(config.reserved_cpu_milli.value, 1000);
  EXPECT_EQ(config.reserved_memory_bytes.value, (std::int64_t{2} << 30) + (100 << 20));
  EXPECT_THAT(*config.reserved_memory.value,
              ElementsAre(ReservedMemory{1, "memory", std::int64_t{3} << 30}));
}

TEST_F(KubeletConfigTest, LaysFlagsOverFiles) {
  RunKubelet(
      "--config=/k.yaml --topology-manager-policy=restricted --reserved-cpus=1-2 "
      "--eviction-hard=memory.available<1Gi --feature-gates=A=false,B=true "
      "--reserved-memory=0:memory=1Gi");
  tree_.Put("k.yaml", kHeader + R"(
topologyManagerPolicy: best-effort
topologyManagerScope: pod
reservedSystemCPUs: "0"
evictionHard: {memory.available: 500Mi, nodefs.available: "10%"}
featureGates: {A: true, C: true}
reservedMemory: [{numaNode: 1, limits: {memory: 3Gi}}]
)");
  const KubeletConfig config = Read();
  const auto flag = ConfigSource::kCommandLine;
  EXPECT_EQ(config.topology_policy,
            From<std::string>("restricted", flag, "--topology-manager-policy"));
  EXPECT_EQ(config.topology_scope.source, ConfigSource::kFile);
  EXPECT_EQ(config.reserved_cpus, From(base::CpuSet{1, 2}, flag, "--reserved-cpus"));
  EXPECT_EQ(config.reserved_memory_bytes, From<std::int64_t>(1 << 30, flag, "--eviction-hard"));
  EXPECT_THAT(*config.feature_gates.value,
              ElementsAre(Pair("A", "false"), Pair("B", "true"), Pair("C", "true")));
  EXPECT_THAT(*config.reserved_memory.value, ElementsAre(ReservedMemory{0, "memory", 1 << 30}));
}

TEST_F(KubeletConfigTest, CountsTheDefaultEvictionThresholdAsTheKubeletDoes) {
  RunKubelet("--config=/k.yaml");
  const auto reserved = [this](const std::string& yaml) {
    tree_.Put("k.yaml", kHeader + yaml);
    return Read().reserved_memory_bytes.value;
  };
  EXPECT_EQ(reserved(""), 100 << 20);
  EXPECT_EQ(reserved("evictionHard: {nodefs.available: 5%}\n"), 0);
  EXPECT_EQ(reserved("evictionHard: {nodefs.available: 5%}\nmergeDefaultEvictionSettings: true\n"),
            100 << 20);
  EXPECT_EQ(reserved("evictionHard: {memory.available: 0%}\n"), 0);
  EXPECT_EQ(reserved("evictionHard: {memory.available: 5%}\n"), std::nullopt);
  EXPECT_THAT(Read().diagnostics,
              Contains(Field(&base::Diagnostic::message, HasSubstr("capacity that is not known"))));
}

TEST_F(KubeletConfigTest, AValueThatIsNotUnderstoodIsUnknownAndNamed) {
  RunKubelet("--config=/k.yaml --kube-reserved=nonsense");
  tree_.Put("k.yaml", kHeader + R"(
topologyManagerPolicy: [restricted]
reservedSystemCPUs: "0-x"
cpuManagerPolicyOptions: full
reservedMemory: [{numaNode: a, limits: {memory: 1Gi}}]
featureGates: {A: perhaps}
)");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.source, ConfigSource::kUnknown);
  EXPECT_EQ(config.reserved_cpus.value, std::nullopt);
  EXPECT_EQ(config.cpu_options.value, std::nullopt);
  EXPECT_EQ(config.reserved_memory.value, std::nullopt);
  EXPECT_EQ(config.feature_gates.value, std::nullopt);
  EXPECT_EQ(config.reserved_cpu_milli.value, std::nullopt);
  EXPECT_EQ(config.reserved_memory_bytes.value, std::nullopt);
  EXPECT_EQ(config.memory_policy, Default("None"));
  for (const char* field : {"topologyManagerPolicy", "reservedSystemCPUs", "reservedMemory",
                            "cpuManagerPolicyOptions", "featureGates", "kubeReserved"}) {
    EXPECT_EQ(std::count_if(config.diagnostics.begin(), config.diagnostics.end(),
                            [field](const base::Diagnostic& d) {
                              return d.code == "KubeletValueInvalid" && d.subject == field;
                            }),
              1)
        << field;
  }
}

TEST_F(KubeletConfigTest, NamesWhatItLookedAtAlsoIfItIsNotThere) {
  tree_.Put("k.yaml", kHeader).Put("drop-ins/10.conf", kHeader);
  RunProcess("kubelet --config=/k.yaml --config-dir=/drop-ins");
  EXPECT_THAT(Read().looked_at, testing::ElementsAre("/drop-ins", "/drop-ins/10.conf", "/k.yaml"));
  tree_.Remove("k.yaml");
  EXPECT_THAT(Read().looked_at, testing::Contains("/k.yaml"));
}

TEST_F(KubeletConfigTest, AFileChangedSinceTheKubeletStartedIsNamed) {
  tree_.Put("k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  RunProcess("kubelet --config=/k.yaml", 1000000000);  // 2001, before the file was written
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.value, "restricted");
  ASSERT_THAT(config.diagnostics, HasCode("ConfigNewerThanKubelet"));
  EXPECT_THAT(config.diagnostics[0].message,
              HasSubstr("the kubelet started at 2001-09-09T01:46:45"));
  RunProcess("kubelet --config=/k.yaml");  // restarted: started in 2033
  EXPECT_THAT(Read().diagnostics, IsEmpty());
}

TEST_F(KubeletConfigTest, AnUnreadableFileLeavesFlagsThenStateThenNothing) {
  RunKubelet("--config=/gone.yaml --topology-manager-policy=restricted");
  tree_.Put("var/lib/kubelet/cpu_manager_state", R"({"policyName":"static","defaultCpuSet":"0"})");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.source, ConfigSource::kCommandLine);
  EXPECT_EQ(config.cpu_policy, From<std::string>("static", ConfigSource::kState,
                                                 "/var/lib/kubelet/cpu_manager_state"));
  EXPECT_EQ(config.memory_policy, Sourced<std::string>());
  EXPECT_EQ(config.topology_scope, Sourced<std::string>());
  EXPECT_THAT(config.diagnostics, HasCode("KubeletConfigUnreadable"));
}

TEST_F(KubeletConfigTest, AnUnreadableDropInMakesAllValuesOfFilesUnknown) {
  RunKubelet("--config=/k.yaml --config-dir=/k.d --cpu-manager-policy=static");
  tree_.Put("k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  tree_.Put("k.d/10.conf", "topologyManagerPolicy: none\n");  // no kind: the kubelet refuses it
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy, Sourced<std::string>());
  EXPECT_EQ(config.cpu_policy.value, "static");
  EXPECT_THAT(config.diagnostics, HasCode("KubeletConfigUnreadable"));
}

TEST_F(KubeletConfigTest, MegabytesOfDropInsCountAsUnreadable) {
  RunKubelet("--config=/k.yaml --config-dir=/k.d");
  tree_.Put("k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  const std::string filler = kHeader + "# " + std::string(1'000'000, 'x') + "\n";
  for (const char* name : {"1", "2", "3", "4", "5"}) {
    tree_.Put(std::string("k.d/") + name + ".conf", filler);
  }
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy, Sourced<std::string>());
  EXPECT_THAT(config.diagnostics, Contains(Field(&base::Diagnostic::subject, "/k.d/5.conf")));
}

TEST_F(KubeletConfigTest, AFileThatWasAskedForMustBeReadable) {
  RunKubelet("--config=/k.yaml --topology-manager-scope=pod");
  tree_.Put("k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  tree_.Put("mine.yaml", kHeader + "topologyManagerPolicy: best-effort\n");
  const KubeletConfig config = Read({.config_file = "mine.yaml"});
  EXPECT_EQ(config.topology_policy,
            From<std::string>("best-effort", ConfigSource::kFile, "mine.yaml"));
  EXPECT_EQ(config.topology_scope.source, ConfigSource::kCommandLine);
  const auto refused = [this](const std::string& content, const std::string& why) {
    tree_.Put("mine.yaml", content);
    const absl::Status status =
        ReadKubeletConfig(tree_.Open(), {.config_file = "mine.yaml"}).status();
    EXPECT_FALSE(status.ok()) << content;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("mine.yaml"));
  };
  refused("apiVersion: v1\nkind: Config\n", "its kind is \"Config\"");
  refused("", "its kind is \"\"");
  refused("a: b: c\n", "line 1");
  refused(kHeader + "a: 1\na: 2\n", "line 4: the key \"a\" appears twice");
  refused(kHeader + "a: " + std::string(2000, '['), "nested too deeply");
  EXPECT_THAT(ReadKubeletConfig(tree_.Open(), {.config_file = "/none.yaml"}),
              test::StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.yaml")));
}

TEST_F(KubeletConfigTest, WithoutAProcessIsLookedForWhereKubeletsKeepIt) {
  tree_.Folder("proc").Folder("var/lib/k0s/kubelet");
  tree_.Put("var/lib/k0s/kubelet-config.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy, From<std::string>("restricted", ConfigSource::kFile,
                                                      "/var/lib/k0s/kubelet-config.yaml"));
  EXPECT_EQ(config.topology_scope, Default("container"));
  EXPECT_EQ(config.root_dir, "/var/lib/k0s/kubelet");
}

TEST_F(KubeletConfigTest, DoesNotTakeAKubeconfigForIt) {
  tree_.Folder("proc").Put("etc/kubernetes/kubelet.conf", "apiVersion: v1\nkind: Config\n");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy, Sourced<std::string>());
  EXPECT_THAT(config.diagnostics, HasCode("NoKubeletConfig"));
  EXPECT_THAT(config.diagnostics, testing::Not(HasCode("KubeletConfigUnreadable")));
}

TEST_F(KubeletConfigTest, OfMicroK8sComesFromItsArgumentsFile) {
  RunProcess("/snap/microk8s/1/kubelite --kubelet-args-file=/var/snap/microk8s/9/args/kubelet");
  tree_.Put("var/snap/microk8s/9/args/kubelet",
            "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n--cpu-manager-policy=static\n");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.root_dir, "/var/snap/microk8s/common/var/lib/kubelet");
  EXPECT_EQ(config.cpu_policy.value, "static");
  EXPECT_EQ(config.topology_policy, Default("none"));
}

TEST_F(KubeletConfigTest, InsideK3sHasNoDefaultsBecauseFlagsAreHidden) {
  RunProcess("/usr/local/bin/k3s server --kubelet-arg=topology-manager-scope=pod");
  tree_.Put(
      "etc/rancher/k3s/config.yaml",
      "kubelet-arg:\n- topology-manager-policy=restricted\n- topology-manager-scope=container\n");
  tree_.Put("var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf",
            kHeader + "memoryManagerPolicy: Static\n");
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.value, "restricted");
  EXPECT_EQ(config.topology_scope.value, "pod");
  EXPECT_EQ(config.memory_policy.source, ConfigSource::kFile);
  EXPECT_EQ(config.cpu_policy, Sourced<std::string>());
  EXPECT_THAT(config.diagnostics, HasCode("KubeletEmbedded"));
}

// Cut down from what a kubelet 1.37 answers.
constexpr char kConfigz[] =
    R"({"kubeletconfig":{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
    R"("enableServer":true,"syncFrequency":"1m0s","cpuManagerPolicy":"static",)"
    R"("cpuManagerPolicyOptions":{"full-pcpus-only":"true"},"memoryManagerPolicy":"Static",)"
    R"("topologyManagerPolicy":"restricted","topologyManagerScope":"pod",)"
    R"("evictionHard":{"imagefs.available":"15%","memory.available":"100Mi"},)"
    R"("featureGates":{"CPUManagerPolicyAlphaOptions":true},"kubeReserved":{"memory":"1Gi"},)"
    R"("reservedSystemCPUs":"0,4","reservedMemory":[{"numaNode":0,"limits":{"memory":"1124Mi"}}]}})";

TEST_F(KubeletConfigTest, IsWhatTheRunningKubeletSaysWhateverFilesAndFlagsSay) {
  RunProcess("/usr/bin/kubelet --config=/etc/k.yaml --cpu-manager-policy=none", 1000);  // older
  tree_.Put("etc/k.yaml",
            kHeader + "topologyManagerPolicy: none\ntopologyManagerScope: container\n");
  const KubeletConfig config = Read({.configz = kConfigz});
  const auto configz = ConfigSource::kConfigz;
  EXPECT_EQ(config.topology_policy, From<std::string>("restricted", configz, "configz"));
  EXPECT_EQ(config.topology_scope, From<std::string>("pod", configz, "configz"));
  EXPECT_EQ(config.cpu_policy, From<std::string>("static", configz, "configz"));
  EXPECT_THAT(*config.cpu_options.value, ElementsAre(Pair("full-pcpus-only", "true")));
  EXPECT_EQ(config.memory_policy, From<std::string>("Static", configz, "configz"));
  EXPECT_EQ(config.reserved_cpus.value, (base::CpuSet{0, 4}));
  EXPECT_EQ(config.reserved_memory_bytes.value, std::int64_t{1124} << 20);
  EXPECT_THAT(*config.feature_gates.value,
              ElementsAre(Pair("CPUManagerPolicyAlphaOptions", "true")));
  EXPECT_EQ(config.pid, 42);
  EXPECT_THAT(config.diagnostics, IsEmpty());  // also none that the file is newer
  EXPECT_THAT(config.looked_at, IsEmpty());
}

TEST_F(KubeletConfigTest, TakesWhatConfigzLeavesOutForTheDefault) {
  RunKubelet("--config=/etc/k.yaml");
  tree_.Put("etc/k.yaml",
            kHeader + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: 16}\n");
  const KubeletConfig config =
      Read({.configz = R"({"kubeletconfig":{"cpuManagerPolicy":"none"}})"});
  EXPECT_EQ(config.topology_policy, Default("none"));
  EXPECT_THAT(*config.topology_options.value, IsEmpty());
  EXPECT_EQ(config.reserved_memory_bytes.value, 0);
}

TEST_F(KubeletConfigTest, OfAK3sThatSaysItselfIsKnownWhole) {
  RunProcess("/usr/local/bin/k3s server");
  const KubeletConfig config = Read({.configz = kConfigz});
  EXPECT_EQ(config.topology_policy.value, "restricted");
  EXPECT_THAT(config.diagnostics, IsEmpty());
}

TEST_F(KubeletConfigTest, FallsBackToTheFileWhereConfigzCannotBeUsed) {
  RunKubelet("--config=/etc/k.yaml");
  tree_.Put("etc/k.yaml", kHeader + "topologyManagerPolicy: restricted\n");
  for (const char* configz :
       {"", "<html>", "{", "{}", R"({"kubeletconfig":{}})", R"({"kubeletconfig":"no"})",
        R"({"kubeletconfig":{"apiVersion":"kubescheduler.config.k8s.io/v1"}})"}) {
    const KubeletConfig config = Read({.configz = configz});
    EXPECT_EQ(config.topology_policy,
              From<std::string>("restricted", ConfigSource::kFile, "/etc/k.yaml"))
        << configz;
    EXPECT_THAT(config.diagnostics, HasCode("ConfigzInvalid")) << configz;
  }
}

TEST(ParseYaml, BoundsAliasesThatGrowOrHoldThemselves) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += "," + last;
    bomb += "]\n";
  }
  EXPECT_THAT(ParseYaml(bomb),
              test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many values")));
  EXPECT_FALSE(ParseYaml("&a [*a]").ok());
  EXPECT_THAT(ParseYaml(std::string(100000, '-') + " x"),
              test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too deeply")));
  EXPECT_THAT(ParseYaml("- " + std::string(5000, '?') + "x"),
              test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too deeply")));
  EXPECT_THAT(ParseYaml(std::string((1 << 20) + 1, ' ')),
              test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
}

KubeletConfig StaticMemory(std::vector<ReservedMemory> reserved, std::int64_t wanted) {
  KubeletConfig config;
  config.memory_policy = {"Static", ConfigSource::kFile, "k.yaml"};
  config.reserved_memory = {std::move(reserved), ConfigSource::kFile, "k.yaml"};
  config.reserved_memory_bytes = {wanted, ConfigSource::kFile, "k.yaml"};
  return config;
}

TEST(CheckKubeletConfig, NamesAStateFileOfAnotherPolicy) {
  KubeletConfig config;
  config.cpu_policy = {"static", ConfigSource::kFile, "/k.yaml"};
  KubeletState state;
  ASSERT_OK_AND_ASSIGN(
      state.cpu,
      ParseCpuManagerState(R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})"));
  const base::Diagnostics found = CheckKubeletConfig(config, state, 2);
  ASSERT_THAT(found, ElementsAre(Field(&base::Diagnostic::code, "StatePolicyDiffers")));
  EXPECT_THAT(found[0].message, HasSubstr("delete /var/lib/kubelet/cpu_manager_state"));
  state.cpu->policy = "static";
  EXPECT_THAT(CheckKubeletConfig(config, state, 2), IsEmpty());
}

TEST(CheckKubeletConfig, SaysWhichSumReservedMemoryMustHave) {
  const std::int64_t wanted = std::int64_t{993} << 20;
  const base::Diagnostics none = CheckKubeletConfig(StaticMemory({}, wanted), {}, 2);
  ASSERT_THAT(none, ElementsAre(Field(&base::Diagnostic::code, "ReservedMemorySum")));
  EXPECT_THAT(none[0].message, HasSubstr("must be 993Mi (1041235968 bytes)"));
  const base::Diagnostics by_a_byte = CheckKubeletConfig(
      StaticMemory({{0, "memory", wanted - 1}, {1, "memory", 2}}, wanted), {}, 2);
  ASSERT_THAT(by_a_byte, ElementsAre(Field(&base::Diagnostic::code, "ReservedMemorySum")));
  EXPECT_THAT(by_a_byte[0].message, HasSubstr("take away 1 (1 bytes)"));
  EXPECT_THAT(CheckKubeletConfig(
                  StaticMemory({{0, "memory", wanted - 1}, {1, "memory", 1}}, wanted), {}, 2),
              IsEmpty());
}

TEST(CheckKubeletConfig, SaysThatStaticMemoryNeedsAReservationAndNoHugePages) {
  EXPECT_THAT(CheckKubeletConfig(StaticMemory({}, 0), {}, 2),
              ElementsAre(Field(&base::Diagnostic::code, "NoReservedMemory")));
  EXPECT_THAT(
      CheckKubeletConfig(StaticMemory({{0, "hugepages-1Gi", 1 << 30}, {0, "memory", 5}}, 5), {}, 2),
      ElementsAre(Field(&base::Diagnostic::code, "ReservedHugePages")));
  EXPECT_THAT(CheckKubeletConfig(
                  StaticMemory({{0, "memory", INT64_MAX}, {1, "memory", INT64_MAX}}, 5), {}, 2),
              ElementsAre(Field(&base::Diagnostic::code, "ReservedMemorySum")));
}

TEST(CheckKubeletConfig, TakesNoSumThatIsNotKnownForWrong) {
  KubeletConfig config = StaticMemory({{0, "memory", 1}}, 0);
  config.reserved_memory_bytes = {};
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2), IsEmpty());
  config = StaticMemory({{0, "memory", 1}}, 2);
  config.memory_policy.value = "None";
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2), IsEmpty());
}

TEST(CheckKubeletConfig, ChecksHowManyNumaNodesTheKubeletAllows) {
  const auto codes = [](std::optional<std::string> option, int nodes, const char* policy) {
    KubeletConfig config;
    config.topology_policy = {policy, ConfigSource::kFile, "k.yaml"};
    config.topology_options.value.emplace();
    if (option) (*config.topology_options.value)["max-allowable-numa-nodes"] = *option;
    std::string all;
    for (const base::Diagnostic& d : CheckKubeletConfig(config, {}, nodes)) all += d.code;
    return all;
  };
  EXPECT_EQ(codes("true", 16, "restricted"), "MaxNumaNodesInvalid");
  EXPECT_EQ(codes("7", 2, "restricted"), "MaxNumaNodesInvalid");
  EXPECT_EQ(codes("", 2, "restricted"), "MaxNumaNodesInvalid");
  EXPECT_EQ(codes("16", 16, "restricted"), "");
  EXPECT_EQ(codes("8", 8, "restricted"), "");
  EXPECT_EQ(codes("8", 9, "restricted"), "TooManyNumaNodes");
  EXPECT_EQ(codes(std::nullopt, 9, "best-effort"), "TooManyNumaNodes");
  EXPECT_EQ(codes(std::nullopt, 8, "best-effort"), "");
  EXPECT_EQ(codes(std::nullopt, 0, "best-effort"), "");
  EXPECT_EQ(codes("true", 16, "none"), "");
}

TEST(CheckKubeletConfig, ChecksThatStaticCpusHaveReservedOnes) {
  KubeletConfig config;
  config.cpu_policy = {"static", ConfigSource::kFile, "k.yaml"};
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2), IsEmpty());  // reservations not known
  config.reserved_cpus.value.emplace();
  config.reserved_cpu_milli.value = 0;
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2),
              ElementsAre(Field(&base::Diagnostic::code, "NoReservedCpus")));
  config.reserved_cpus.value = base::CpuSet{0};
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2), IsEmpty());
  config.topology_policy = {"single-numa-node", ConfigSource::kFile, "k.yaml"};
  config.cpu_options.value = Options{{"align-by-socket", "true"}};
  config.topology_options.value.emplace();
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2),
              ElementsAre(Field(&base::Diagnostic::code, "AlignBySocketConflict")));
}

TEST_F(KubeletConfigTest, OfARecordedNodeIsReadAndPassesTheCheck) {
  SKIP_WITHOUT_SHARED();
  RunKubelet("--config=/kubelet.yaml");
  tree_.Put("kubelet.yaml", test::ReadShared("kube/kit/guest/guest-files/kubelet.yaml"));
  const KubeletConfig config = Read();
  EXPECT_EQ(config.topology_policy.value, "single-numa-node");
  EXPECT_EQ(config.topology_scope.value, "pod");
  EXPECT_EQ(config.reserved_cpus.value, (base::CpuSet{0, 4}));
  EXPECT_EQ(config.reserved_memory_bytes.value, std::int64_t{512} << 20);
  EXPECT_THAT(CheckKubeletConfig(config, {}, 2), IsEmpty());
}

}  // namespace
}  // namespace podresources
