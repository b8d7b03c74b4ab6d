#include "placement/encode.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <yaml-cpp/yaml.h>

#include <regex>

#include "placement/decode.h"
#include "placement/document_writer.h"
#include "test/placement/any.h"
#include "test/placement/scene.h"
#include "test/support/status.h"

namespace placement {
namespace {

using ::test::StatusIs;
using testing::HasSubstr;

// What YAML 1.1 makes of a plain word that is meant as text.
bool WouldBeMisread(const std::string& plain) {
  static const std::regex kNotText(
      "~|null|Null|NULL|[yY]|[nN]|(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|"
      "off|Off|OFF)|[-+]?[0-9.][0-9a-fA-FxXoO_.:eE+-]*|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)|=|<<"
      "|");
  return std::regex_match(plain, kNotText);
}

// Empty if both are the same document, else where they differ. yaml-cpp reads JSON, too.
std::string Difference(const YAML::Node& json, const YAML::Node& yaml, const std::string& path) {
  if (json.Type() != yaml.Type() || json.size() != yaml.size()) return path;
  if (json.IsSequence()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      std::string where = Difference(json[i], yaml[i], fmt::format("{}[{}]", path, i));
      if (!where.empty()) return where;
    }
  } else if (json.IsMap()) {
    for (const auto& member : json) {
      const std::string key = member.first.Scalar();
      if (!yaml[key]) return fmt::format("{}.{}", path, key);
      std::string where = Difference(member.second, yaml[key], fmt::format("{}.{}", path, key));
      if (!where.empty()) return where;
    }
  } else {
    const bool is_text = json.Tag() == "!";  // quoted
    const bool stays_text = yaml.Tag() == "!" || !WouldBeMisread(yaml.Scalar());
    if (json.Scalar() != yaml.Scalar() || is_text != stays_text) return path;
  }
  return "";
}

std::string Difference(const std::string& json, const std::string& yaml) {
  try {
    return Difference(YAML::Load(json), YAML::Load(yaml), "$");
  } catch (const YAML::Exception& error) {
    return error.what();
  }
}

NodePlacement Example() {
  Scene scene(TwoNodes(), "0,16");
  scene.facts.observed_at = base::Time(std::chrono::milliseconds(1'796'040'000'123));
  AddGpu(scene.facts.topology, 0x1b, 0);
  scene.AddDevice(Gpu("GPU-8a", {0}));
  scene.Resolve("GPU-8a", 0x1b);
  scene.Add("llm-0", "0c1e",
            {{.name = "server",
              .cpus = Cpus("4-11"),
              .memory = {Block(32 * kGiB, {0})},
              .devices = {Gpu("GPU-8a", {0})},
              .claims = {}}});
  scene.Enforce("0c1e", "aa", "4-11", "0", 61203283968);
  scene.facts.container_names["aa"] = "server";
  return scene.Look().placement;
}

TEST(Encode, WritesTheObjectFieldByField) {
  const std::string yaml = ToYaml(Example());
  for (const char* part :
       {"apiVersion: plumbline.dev/v1alpha1\nkind: NodePlacement\nmetadata:\n  name: "
        "gpu-7\nstatus:\n"
        "  revision: 0\n",
        "  bootID: boot-1\n", "  agentVersion: \"0.1.0\"\n", "    configSource: file\n",
        "    topologyManager:\n      policy: single-numa-node\n      scope: container\n"
        "      options: {}\n",
        "    cpuManager:\n      policy: static\n      options: {}\n      reservedCPUs: \"0,16\"\n",
        "  numaNodes:\n    - id: 0\n      cpus: \"0-15\"\n      coreGroups:\n        - socket: 0\n"
        "          l3: 0\n          cores: \"0 1 2",
        "      freeCPUs: \"1-3,12-15\"\n      memory:\n        - type: memory\n"
        "          capacity: \"64Gi\"\n          systemReserved: \"0\"\n"
        "          allocatable: \"64Gi\"\n          free: \"32Gi\"\n      memoryGroup:\n"
        "        - 0\n      memoryAssignments: 1\n      distances:\n        \"0\": 10\n"
        "        \"1\": 21\n",
        "  devices:\n    - resource: nvidia.com/gpu\n      id: GPU-8a\n      numaNodes:\n        - "
        "0\n"
        "      healthy: true\n      pciAddress: \"0000:1b:00.0\"\n      pciNumaNode: 0\n",
        "  knownPods:\n    - \"0c1e\"\n", "      alignment: Aligned\n",
        "          kernel:\n            cpus: \"4-11\"\n            memoryNodes: \"0\"\n"
        "            residentBytes:\n              \"0\": 61203283968\n",
        "    free: \"0: 0 gpu 7 cpu · 1: 0 gpu 15 cpu\"\n",
        "    - type: PodResourcesReachable\n      status: \"True\"\n"}) {
    EXPECT_THAT(yaml, HasSubstr(part));
  }
}

TEST(Encode, WritesTheSameDocumentAsJsonAndAsYaml) {
  const NodePlacement example = Example();
  EXPECT_EQ(Difference(ToJson(example), ToYaml(example)), "");
  EXPECT_EQ(Difference(ToJson(example, JsonStyle::kIndented), ToYaml(example)), "");
  EXPECT_TRUE(rc::check([] {
    const NodePlacement placement = *AnyPlacement();
    RC_ASSERT(Difference(ToJson(placement), ToYaml(placement)) == "");
  }));
}

TEST(Encode, WritesTheStandardObjectAlikeAsJsonAndAsYaml) {
  Scene scene(TwoNodes());
  scene.AddDevice(Gpu("GPU-8a", {0}));
  const Observation seen = scene.Look();
  EXPECT_EQ(Difference(ToJson(*seen.nrt), ToYaml(*seen.nrt)), "");
  EXPECT_THAT(
      ToYaml(*seen.nrt),
      HasSubstr("zones:\n  - name: node-0\n    type: Node\n    costs:\n      - name: node-0\n"
                "        value: 10\n"));
  EXPECT_THAT(ToJson(*seen.nrt), HasSubstr("{\"name\":\"cpu\",\"capacity\":16,\"allocatable\":15,"
                                           "\"available\":15}"));
  EXPECT_THAT(ToJson(seen), testing::StartsWith("{\"apiVersion\":\"v1\",\"kind\":\"List\""));
}

TEST(Encode, WritesWhatIsAppliedWithItsOwner) {
  NodeResourceTopology nrt;
  nrt.name = "gpu-7";
  constexpr char kOwner[] =
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gpu-7","uid":"node-1"}])";
  EXPECT_EQ(ToOwnedJson(nrt, "node-1"),
            std::string(R"({"apiVersion":"topology.node.k8s.io/v1alpha2",)"
                        R"("kind":"NodeResourceTopology","metadata":{"name":"gpu-7",)") +
                kOwner + R"(},"zones":[]})");
  EXPECT_EQ(ToOwnedJson(nrt, "") + "\n", ToJson(nrt));
  EXPECT_EQ(ToOwnedJson(Example(), "node-1"),
            std::string(R"({"apiVersion":"plumbline.dev/v1alpha1","kind":"NodePlacement",)"
                        R"("metadata":{"name":"gpu-7",)") +
                kOwner + "}}");
}

TEST(Encode, ReadsBackWhatItWrote) {
  EXPECT_TRUE(rc::check([] {
    const NodePlacement placement = *AnyPlacement();
    const absl::StatusOr<NodePlacement> read = ParseNodePlacement(ToJson(placement));
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == placement);
  }));
}

TEST(Encode, QuotesWhatAYamlReaderWouldTakeForSomethingElse) {
  for (const std::string text :
       {"yes", "NO", "on", "n",    "1e3", "0x1f",       "0-3",         "null", "~",
        "007", "",   " x", "x: y", "#",   "2026-11-29", "True",        ".5",   "a\nb",
        "\"",  "\\", "\t", "- a",  "NaN", "\xc2\x85",   "\xe2\x80\xa8"}) {
    YamlWriter yaml;
    yaml.BeginMap();
    yaml.Key("key");
    yaml.String(text);
    yaml.EndMap();
    const YAML::Node read = YAML::Load(yaml.text())["key"];
    EXPECT_EQ(read.Scalar(), text);
    EXPECT_EQ(read.Tag(), "!") << "quoted: " << yaml.text();
  }
}

TEST(Encode, WritesNoControlThatATerminalObeys) {
  NodePlacement placement;
  placement.node_name = "a\x1b[31m\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8z";
  for (const std::string& text : {ToJson(placement), ToYaml(placement)}) {
    for (const char* control : {"\x1b", "\x7f", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8"}) {
      EXPECT_THAT(text, testing::Not(testing::HasSubstr(control)));
    }
  }
  ASSERT_OK_AND_ASSIGN(const NodePlacement read, ParseNodePlacement(ToJson(placement)));
  EXPECT_EQ(read.node_name, placement.node_name);
  EXPECT_EQ(YAML::Load(ToYaml(placement))["metadata"]["name"].Scalar(), placement.node_name);
}

// YAML readers look for the colon of a key 1024 characters far.
TEST(Encode, WritesKeysOfAnyLength) {
  const std::string key(5000, 'k');
  YamlWriter yaml;
  yaml.BeginMap();
  yaml.Key("list");
  yaml.BeginList();
  yaml.BeginMap();
  yaml.Key(key);
  yaml.BeginMap();
  yaml.Key(key);
  yaml.String("value");
  yaml.EndMap();
  yaml.Key("other");
  yaml.Int(1);
  yaml.EndMap();
  yaml.EndList();
  yaml.EndMap();
  const YAML::Node read = YAML::Load(yaml.text())["list"][0];
  EXPECT_EQ(read[key][key].Scalar(), "value");
  EXPECT_EQ(read["other"].Scalar(), "1");
}

TEST(Encode, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(ValidUtf8("a\xff"
                      "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(ValidUtf8("·\xf0\x9f\x98\x80"), "·\xf0\x9f\x98\x80");
  NodePlacement placement;
  placement.node_name = "\xc3";
  ASSERT_OK(ParseNodePlacement(ToJson(placement)));
}

TEST(Decode, IgnoresFieldsThatItDoesNotKnow) {
  ASSERT_OK_AND_ASSIGN(const NodePlacement placement,
                       ParseNodePlacement(R"({"kind":"NodePlacement","metadata":{"name":"n","x":1},
      "status":{"revision":7,"fromTheFuture":{"a":[1,{}]},
                "pods":[{"name":"p","alignment":"Floating","more":null}]}})"));
  EXPECT_EQ(placement.revision, 7);
  EXPECT_EQ(placement.pods.at(0).alignment, Alignment::kUnknown);
}

TEST(Decode, TellsNoFreeCpusFromNotKnown) {
  ASSERT_OK_AND_ASSIGN(const NodePlacement placement,
                       ParseNodePlacement(R"({"kind":"NodePlacement","status":{"numaNodes":[
      {"id":0,"freeCPUs":""},{"id":1}]}})"));
  EXPECT_EQ(placement.numa_nodes.at(0).free_cpus, base::CpuSet());
  EXPECT_EQ(placement.numa_nodes.at(1).free_cpus, std::nullopt);
}

TEST(Decode, NamesTheFieldThatCannotBe) {
  EXPECT_THAT(ParseNodePlacement(R"({"kind":"NodePlacement","status":{"numaNodes":[{"id":"x"}]}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("status.numaNodes[0].id")));
  EXPECT_THAT(ParseNodePlacement(R"({"kind":"Node"})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kind is \"Node\"")));
  EXPECT_THAT(ParseNodePlacement("{"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at byte 1")));
  EXPECT_THAT(ParseNodePlacement("[]"),
              StatusIs(absl::StatusCode::kInvalidArgument, "NodePlacement is no JSON object"));
}

TEST(Decode, TakesNoStackForNesting) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_OK(ParseNodePlacement(R"({"kind":"NodePlacement","x":)" + deep + "}"));
}

// Two sockets of 128 cores with two threads in 8 NUMA nodes, full of pods with long names that hold
// CPUs, memory and a MIG device each and are seen by the kernel.
TEST(Encode, StaysUnder256KiBWith250PodsOnALargeMachine) {
  std::vector<NodeSpec> nodes;
  for (int id = 0; id < 8; ++id) {
    nodes.push_back({.id = id,
                     .cpus = fmt::format("{}-{},{}-{}", id * 32, id * 32 + 31, 256 + id * 32,
                                         256 + id * 32 + 31),
                     .memory = 256 * kGiB,
                     .socket = id / 4});
  }
  hwinfo::Topology topology = Machine(nodes);
  for (hwinfo::Cpu& cpu : topology.cpus) {
    cpu.siblings = {cpu.id % 256, cpu.id % 256 + 256};
    cpu.l3 = cpu.id % 256 / 8;
  }
  Scene scene(topology, "255,511");
  for (int pod = 0; pod < 250; ++pod) {
    const base::NumaMask node = {pod / 32};
    podresources::Device mig =
        Gpu(fmt::format("MIG-{:08x}-0000-4000-8000-000000000000", pod), node);
    mig.resource = "nvidia.com/mig-1g.10gb";
    scene.AddDevice(mig);
    const std::string uid = fmt::format("{:08x}-0000-4000-8000-00000000abcd", pod);
    scene.Add(fmt::format("inference-server-{:04}-7d9c5b6f4-abcde", pod), uid,
              {{.name = "inference-server",
                .cpus = {pod, pod + 256},
                .memory = {Block(kGiB, node)},
                .devices = {mig},
                .claims = {}}});
    const std::string id = fmt::format("{:064x}", pod);
    scene.Enforce(uid, id, fmt::format("{},{}", pod, pod + 256), node.ToString(), kGiB);
    scene.facts.container_names[id] = "inference-server";
  }
  const Observation seen = scene.Look();
  ASSERT_EQ(seen.placement.pods.size(), 250U);
  ASSERT_TRUE(seen.placement.pods[0].containers[0].kernel);
  const std::size_t bytes = ToJson(seen.placement, JsonStyle::kCompact).size();
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LT(bytes, std::size_t{256} << 10);
}

}  // namespace
}  // namespace placement
