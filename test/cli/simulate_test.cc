#include "cli/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/text_layout.h"
#include "test/support/files.h"
#include "test/support/temp_tree.h"

namespace cli {
namespace {

using test::Lines;
using test::Slurp;
using testing::HasSubstr;
using testing::Not;

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Result RunWith(const SimulateOptions& options, const std::string& in = "") {
  std::istringstream input(in);
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = RunSimulate(options, input, out, err);
  return {exit_code, out.str(), err.str()};
}

// The text is standard input.
Result RunOn(const std::string& text, SimulateOptions options = {}) {
  options.file = "-";
  return RunWith(options, text);
}

const std::string kMachine = R"(kind: Machine
policy: single-numa-node
numaNodes:
- {cpus: 0-3, devices: {example.com/gpu: 1}}
- {cpus: 4-7}
---
)";

std::string PodWith(const std::string& name, const std::string& limits) {
  return "kind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers:\n" +
         "  - {name: main, resources: {limits: {" + limits + "}}}\n---\n";
}

void ExpectWrong(const Result& result, const std::string& why) {
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(Lines(result.err).size(), 1U) << result.err;
  EXPECT_THAT(result.err, HasSubstr(why));
}

TEST(Simulate, SaysWherePodsSitAndWhatIsFreeAfterThem) {
  const Result result = RunOn(kMachine + PodWith("a", "cpu: 3, memory: 1Gi, example.com/gpu: 1") +
                              PodWith("b", "cpu: 4, memory: 1Gi"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("a  admitted · NUMA node 0\n"));
  EXPECT_THAT(result.out, HasSubstr("3 CPUs 0-2 on 0 · 1 gpu on 0\n"));
  EXPECT_THAT(result.out, HasSubstr("b  admitted · NUMA node 1\n"));
  EXPECT_THAT(result.out, HasSubstr("NUMA node 0  1 of 4 CPUs 3 · 0 of 1 example.com/gpu\n"));
  EXPECT_THAT(result.out, HasSubstr("NUMA node 1  0 of 4 CPUs\n"));
  EXPECT_THAT(result.out, HasSubstr("2 pods: 2 admitted, 0 refused\n"));
}

TEST(Simulate, LeavesWithCode1AndTheKubeletsReasonIfAPodIsRefused) {
  const Result result = RunOn(kMachine + PodWith("wide", "cpu: 6, memory: 1Gi") +
                              PodWith("after", "cpu: 4, memory: 1Gi"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("wide  refused · TopologyAffinityError\n"));
  EXPECT_THAT(result.out, HasSubstr("after  admitted · NUMA node 0\n"));
}

TEST(Simulate, TriesAnotherSettingAndSaysSo) {
  SimulateOptions options;
  options.settings.policy = "best-effort";
  const Result result = RunOn(kMachine + PodWith("wide", "cpu: 6, memory: 1Gi"), options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              HasSubstr("policy best-effort is tried; the node's own is single-numa-node\n"));
  EXPECT_THAT(result.out, HasSubstr("wide  admitted · NUMA nodes 0-1\n"));
  EXPECT_THAT(result.out, HasSubstr("NUMA node 1  2 CPUs 4-5\n"));
  options.settings.cpu_options["full-pcpus-only"] = "true";
  options.settings.policy = "none";
  const std::string smt = "{kind: Machine, numaNodes: [{cpus: 0-7, threads: 2}]}\n---\n";
  EXPECT_THAT(RunOn(smt + PodWith("odd", "cpu: 3, memory: 1Gi"), options).out,
              HasSubstr("odd  refused · SMTAlignmentError\n"));
}

TEST(Simulate, ChecksTheNodesSums) {
  const std::string machine =
      "{kind: Machine, cpuPolicy: none, numaNodes: [{cpus: 0-3}], allocatable: {memory: "
      "3Gi}}\n---\n";
  const Result result = RunOn(machine + PodWith("a", "memory: 2Gi") + PodWith("b", "memory: 2Gi") +
                              PodWith("c", "cpu: 5") + PodWith("d", "memory: 1Gi, cpu: 4"));
  EXPECT_THAT(result.out, HasSubstr("a  admitted\n"));
  EXPECT_THAT(result.out, HasSubstr("b  refused · OutOfmemory\n"));
  EXPECT_THAT(result.out, HasSubstr("c  refused · OutOfcpu\n"));
  EXPECT_THAT(result.out, HasSubstr("d  admitted\n"));
}

TEST(Simulate, TakesTheNodeFromASecondFile) {
  test::TempTree files;
  files.Put("node.yaml", kMachine);
  SimulateOptions options;
  options.node_file = files.Path("node.yaml");
  const std::string pod = PodWith("a", "cpu: 1, memory: 1Gi");
  EXPECT_EQ(RunOn(pod, options).exit_code, 0);
  ExpectWrong(RunOn(kMachine + pod, options), "standard input document 1: is a node, and --node");
  options.node_file = files.Path("none.yaml");
  ExpectWrong(RunOn(pod, options), "cannot read " + files.Path("none.yaml"));
  options.node_file = files.root();
  ExpectWrong(RunOn(pod, options), "cannot read " + files.root());
}

TEST(Simulate, KnowsThePodsThatANodePlacementHolds) {
  const std::string node = R"({"apiVersion": "plumbline.dev/v1alpha1", "kind": "NodePlacement",
    "metadata": {"name": "n"}, "status": {
      "kubelet": {"version": "v1.37.2",
                  "topologyManager": {"policy": "single-numa-node", "scope": "container"},
                  "cpuManager": {"policy": "static", "reservedCPUs": "4"},
                  "memoryManager": {"policy": "None"}},
      "numaNodes": [{"id": 0, "cpus": "0-4", "freeCPUs": "2-3",
                     "coreGroups": [{"socket": 0, "l3": 0, "cores": "0 1 2 3 4"}]}],
      "knownPods": ["u1", "u2"],
      "pods": [{"namespace": "x", "name": "there", "uid": "u1",
                "containers": [{"name": "main", "cpus": "0-1"}]}]}})";
  const std::string there = R"({"kind": "Pod", "metadata": {"name": "there", "uid": "u1"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 2, "memory": 1}}}]}})";
  const std::string fits = R"({"kind": "Pod", "metadata": {"name": "fits"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 2, "memory": 1}}}]}})";
  const Result result = RunOn(node + there + fits);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("there  already there\n"));
  EXPECT_THAT(result.out, HasSubstr("2 CPUs 2-3 on 0\n"));
  EXPECT_THAT(result.out, HasSubstr("1 admitted, 0 refused, 1 already there\n"));
}

const std::string kTopology = R"({"apiVersion": "topology.node.k8s.io/v1alpha2",
  "kind": "NodeResourceTopology", "metadata": {"name": "n"},
  "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"},
                 {"name": "topologyManagerScope", "value": "pod"}],
  "zones": [
    {"name": "node-0", "type": "Node",
     "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": "1"}]},
    {"name": "node-1", "type": "Node",
     "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": "3"}]}]})";

TEST(Simulate, PredictsFromTheCountsOfANodeResourceTopologyAndSaysSo) {
  const std::string pods =
      PodWith("fits", "cpu: 3, memory: 1Gi") + PodWith("wide", "cpu: 2, memory: 1Gi");
  const Result result = RunOn(kTopology + "\n---\n" + pods);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("topology single-numa-node · scope pod"));
  EXPECT_THAT(result.out, HasSubstr("has counts alone"));
  EXPECT_THAT(result.out, HasSubstr("fits  admitted · NUMA node 1\n"));
  EXPECT_THAT(result.out, HasSubstr("wide  refused · TopologyAffinityError\n"));
  SimulateOptions options;
  options.settings.policy = "none";
  EXPECT_THAT(RunOn(kTopology + "\n---\n" + pods, options).out,
              HasSubstr("policy none is tried; the node's own is single-numa-node"));
  options.settings.memory_policy = "Static";
  ExpectWrong(RunOn(kTopology + "\n---\n" + pods, options), "does not tell enough to try");
}

TEST(Simulate, ExplainsARefusalInASentence) {
  const Result result =
      RunOn(kMachine + PodWith("wide", "cpu: 4, memory: 1Gi, example.com/gpu: 1") +
            PodWith("again", "cpu: 1, memory: 1Gi, example.com/gpu: 1"));
  EXPECT_THAT(
      result.out,
      HasSubstr("again  refused · TopologyAffinityError\n  Container main: no GPU is free"));
}

TEST(Simulate, HasNoAnswerWhereTheKubeletWouldNotStart) {
  const Result result =
      RunOn("{kind: Machine, reservedCPUs: \"\", numaNodes: [{cpus: 0-3}]}\n---\n" +
            PodWith("a", "cpu: 2, memory: 1Gi"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("a  not known\n  The kubelet would not start"));
  EXPECT_THAT(result.out, HasSubstr("0 admitted, 0 refused, 1 not known\n"));
}

TEST(Simulate, SaysWhereItIsNotVerifiedForTheKubeletsRelease) {
  const std::string pod = PodWith("a", "cpu: 2, memory: 1Gi");
  EXPECT_THAT(RunOn(kMachine + pod).out, Not(HasSubstr("not verified")));
  EXPECT_THAT(
      RunOn("{kind: Machine, kubeletVersion: v1.99.0, numaNodes: [{cpus: 0-3}]}\n---\n" + pod).out,
      HasSubstr("the prediction is not verified for kubelet v1.99.0\n"));
}

TEST(Simulate, ReadsListsAndTemplatesAndSaysWhatItLeavesOut) {
  const std::string objects = R"({"kind": "List", "items": [
    {"kind": "Machine", "numaNodes": [{"cpus": "0-3"}]},
    {"kind": "PodList", "items": [
      {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}},
      {"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c"}]},
       "status": {"phase": "Succeeded"}}]},
    {"kind": "Deployment", "metadata": {"name": "web", "namespace": "x"}, "spec": {"replicas": 3,
      "template": {"spec": {"containers": [{"name": "c"}]}}}},
    {"kind": "Service", "metadata": {"name": "web"}}]})";
  const Result result = RunOn(objects);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 pods: 2 admitted"));
  EXPECT_THAT(result.out, HasSubstr("x/web  admitted"));
  EXPECT_THAT(result.out, HasSubstr("item 2: b has ended (Succeeded), left out"));
  EXPECT_THAT(result.out, HasSubstr("of Deployment web the pod template is taken once"));
  EXPECT_THAT(result.out, HasSubstr("a Service is neither a pod nor a node, left out"));
}

TEST(Simulate, SaysWhichObjectIsWrong) {
  const std::string pod = PodWith("a", "cpu: 1, memory: 1Gi");
  ExpectWrong(RunOn(pod), "standard input: there is no node");
  ExpectWrong(RunOn(kMachine), "standard input: there are no pods");
  ExpectWrong(RunOn(""), "there is no node");
  ExpectWrong(RunOn(kMachine + kMachine + pod), "document 2: is a second node");
  ExpectWrong(RunOn(kMachine + "[]"), "document 2: is no object");
  ExpectWrong(RunOn(kMachine + "{a: b}"), "document 2: has no kind");
  ExpectWrong(RunOn(kMachine + PodWith("b", "cpu: four")), "document 2: spec.containers[0]");
  ExpectWrong(RunOn("kind: Machine\nnumaNodes: 3\n---\n" + pod),
              "document 1: numaNodes: is no list");
  ExpectWrong(RunOn("a: [\n"), "standard input: ");
  const std::string twice = R"({"kind": "Pod", "metadata": {"name": "a", "uid": "u"},
                               "spec": {"containers": [{"name": "c"}]}})";
  ExpectWrong(RunOn("{\"kind\": \"Machine\", \"numaNodes\": [{}]}" + twice + twice),
              "document 3: a pod of UID u was there before");
}

TEST(Simulate, NamesTheFileThatHasNoPodsAndWhatWasLeftOutThere) {
  test::TempTree files;
  files.Put("node.yaml", kMachine);
  SimulateOptions options;
  options.node_file = files.Path("node.yaml");
  ExpectWrong(RunOn("{kind: pod}", options),
              "standard input: there are no pods; standard input: a pod is neither a pod nor a "
              "node, left out");
}

TEST(Simulate, SaysWhenAmountsStandWhereNobodyLooksForThem) {
  const std::string pods = R"(kind: Pod
metadata: {name: slip}
spec:
  initContainers:
  - {name: i, limits: {cpu: 1}}
  containers:
  - {name: a, resources: {limit: {cpu: 2, memory: 1Gi}}}
  - {name: b, resource: {limits: {cpu: 2, memory: 1Gi}}}
  - {name: c, resources: {limits: {cpu: 2, memory: 1Gi}, claims: [{name: x}]}}
)";
  SimulateOptions options;
  options.look.width = 200;
  const std::string out = RunOn(kMachine + pods, options).out;
  EXPECT_THAT(out, HasSubstr("slip container i: \"limits\" is not looked at; amounts are in "
                             "resources.requests and resources.limits\n"));
  EXPECT_THAT(out, HasSubstr("slip container a: \"limit\" in its resources is not looked at; "
                             "there are requests, limits, claims\n"));
  EXPECT_THAT(out, HasSubstr("slip container b: \"resource\" is not looked at"));
  EXPECT_THAT(out, Not(HasSubstr("slip container c")));
}

TEST(Simulate, SaysWhyAnAdmittedPodHoldsNothingOfItsOwn) {
  SimulateOptions options;
  options.look.width = 200;
  const std::string out =
      RunOn(kMachine + PodWith("burst", "cpu: 2") + PodWith("part", "cpu: 500m") +
                PodWith("slip", "cpu: 1, memory: 1Gi, example.com/gpus: 1") +
                PodWith("none", "example.com/gpus: 0"),
            options)
          .out;
  EXPECT_THAT(out, HasSubstr("  main         nothing of its own\n"
                             "  Its QoS class is Burstable: CPUs and memory of their own only pods "
                             "of class Guaranteed get.\n\npart  admitted\n"
                             "  main         nothing of its own\n\nslip  admitted"));
  EXPECT_THAT(out, HasSubstr("  The node has no example.com/gpus: its kubelet does not look at "
                             "that, and no scheduler would send the pod here.\n\nnone  admitted\n"
                             "  main         nothing of its own\n\n"));
}

TEST(Simulate, WritesTheSameJsonEachTime) {
  SimulateOptions options;
  options.output = OutputFormat::kJson;
  const std::string text = kMachine + PodWith("a", "cpu: 3, memory: 1Gi, example.com/gpu: 1") +
                           PodWith("wide", "cpu: 6, memory: 1Gi");
  const Result result = RunOn(text, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, RunOn(text, options).out);
  for (const char* part :
       {"\"policy\": \"single-numa-node\"", "\"verdict\": \"Admitted\"", "\"cpus\": \"0-2\"",
        "\"gpu-0\"", "\"verdict\": \"Refused\"", "\"reason\": \"TopologyAffinityError\"",
        "\"admitted\": 1", "\"refused\": 1"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Simulate, FitsEveryWidthAndSendsNoControlSequence) {
  const std::string text =
      kMachine + PodWith("\"a\\e[31mb\"", "cpu: 3, memory: 1Gi") +
      PodWith(std::string(200, 'x'), "cpu: 6, memory: 1Gi, example.com/gpu: 1");
  for (const int width : {60, 80, 200}) {
    SimulateOptions options;
    options.look.width = width;
    const Result result = RunOn(text, options);
    for (const std::string& line : Lines(result.out)) EXPECT_LE(base::Width(line), width) << line;
    EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  }
  SimulateOptions ascii;
  ascii.look.ascii = true;
  EXPECT_TRUE(std::ranges::all_of(RunOn(text, ascii).out,
                                  [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  SimulateOptions color;
  color.look.color = true;
  EXPECT_THAT(RunOn(text, color).out, HasSubstr("\x1b[32madmitted\x1b[0m"));
}

TEST(Simulate, ShowsTheDemoAsTheDocumentDoes) {
  SimulateOptions options;
  options.file = "demo/simulate.yaml";
  const Result result = RunWith(options);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(Slurp("docs/simulate.md"), HasSubstr("```\n" + result.out + "```\n"));
}

SimulateOptions Recorded(const std::string& path) {
  SimulateOptions options;
  options.recorded = path;
  return options;
}

const char* const kSeed = "test/fuzz/seeds/recording_fuzz/add-remove-health.jsonl";

TEST(SimulateRecorded, CountsWhatAgrees) {
  const Result result = RunWith(Recorded(kSeed));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("recordings              1 (kubelet v1.37.2)\n"));
  EXPECT_THAT(result.out, HasSubstr("events                  2\n"));
  for (const char* word : {"verdicts  ", "reasons  ", "affinities  ", "CPU sets  ", "memory  "}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
  EXPECT_THAT(result.out, HasSubstr("devices per NUMA node   2 of 2\n"));
}

TEST(SimulateRecorded, ShowsDifferencesAndLeavesWithCode1) {
  std::string line = Slurp(kSeed);
  const std::string old_text = "\"affinity\":[0],\"preferred\":true,\"cpus\":\"1,5\"";
  line.replace(line.find(old_text), old_text.size(),
               "\"affinity\":[1],\"preferred\":true,\"cpus\":\"1,5\"");
  test::TempTree files;
  files.Put("r", line);
  SimulateOptions options = Recorded(files.Path("r"));
  EXPECT_THAT(RunWith(options).out, Not(HasSubstr("predicted:")));
  options.show = 1;
  const Result result = RunWith(options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("affinities              1 of 2\n"));
  EXPECT_THAT(result.out, HasSubstr("n event 1 pod p0\n  predicted: admitted; i: affinity 0"));
  options.output = OutputFormat::kJson;
  EXPECT_THAT(RunWith(options).out, HasSubstr("\"agrees\": false"));
}

TEST(SimulateRecorded, CountsWhatItDoesNotCompareAfterAVerdictThatDiffers) {
  std::string line = Slurp(kSeed);
  const std::string old_text = "\"verdict\":{\"admit\":true";
  line.replace(line.find(old_text), old_text.size(), "\"verdict\":{\"admit\":false");
  test::TempTree files;
  files.Put("r", line);
  const Result result = RunWith(Recorded(files.Path("r")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("verdicts                0 of 1\n"));
  EXPECT_THAT(result.out, HasSubstr("not compared            1, after a verdict that differs\n"));
}

TEST(SimulateRecorded, NamesLineAndFieldOfWrongInput) {
  const std::string line = Slurp(kSeed);
  std::string wrong = line;
  const std::string old_text = "\"uid\":\"p1\"";
  wrong.replace(wrong.find(old_text), old_text.size(), "\"uid\":1");
  test::TempTree files;
  files.Put("wrong", line + wrong).Put("gap", line + "\n" + line).Put("empty", "");
  ExpectWrong(RunWith(Recorded(files.Path("wrong"))),
              "wrong line 2: events[3].pod.uid: is no text");
  ExpectWrong(RunWith(Recorded(files.Path("gap"))), "gap line 2: no JSON");
  ExpectWrong(RunWith(Recorded(files.Path("empty"))), "holds no recording");
  ExpectWrong(RunWith(Recorded(files.Path("none"))), "cannot open");
}

TEST(SimulateRecorded, ComparesWithTheRunningKubeletOnlyWhereThereIsItsWord) {
  SimulateOptions options = Recorded(kSeed);
  options.live = true;
  const Result result = RunWith(options);
  EXPECT_THAT(result.out, HasSubstr("events                  1\n"));
  EXPECT_THAT(result.out, HasSubstr("affinities              not told by a running kubelet\n"));
  EXPECT_THAT(result.out, HasSubstr("not recorded live       1\n"));
}

}  // namespace
}  // namespace cli
