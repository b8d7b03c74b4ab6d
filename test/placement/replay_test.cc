#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "placement/accounting.h"
#include "test/support/shared.h"

// Replays recordings of a real kubelet's managers: what it counts after a pod was removed and the
// next one admitted must be what ReleaseInactive frees, less what the next one takes.
namespace placement {
namespace {

using podresources::MemoryBlock;
using podresources::MemoryManagerState;
using rapidjson::Value;

std::string Unzipped(const std::string& path) {
  const std::string command = fmt::format("gzip -dc '{}'", path);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 65536> buffer{};
  for (std::size_t n = 1; pipe && n > 0;) {
    n = fread(buffer.data(), 1, buffer.size(), pipe.get());
    text.append(buffer.data(), n);
  }
  return text;
}

base::NumaMask Mask(const Value& ids) {
  base::NumaMask mask;
  for (const Value& id : ids.GetArray()) mask.Insert(id.GetInt());
  return mask;
}

std::vector<MemoryBlock> Blocks(const Value& container) {
  std::vector<MemoryBlock> blocks;
  if (!container.HasMember("memory")) return blocks;
  for (const Value& block : container["memory"].GetArray()) {
    blocks.push_back({.type = block["type"].GetString(),
                      .bytes = block["size"].GetInt64(),
                      .numa_nodes = Mask(block["numa"])});
  }
  return blocks;
}

// As the kubelet fills its table.
void Allocate(const std::vector<MemoryBlock>& blocks, MemoryManagerState& state) {
  for (const MemoryBlock& block : blocks) {
    std::int64_t left = block.bytes;
    for (const int id : block.numa_nodes) {
      podresources::MemoryNode& node = state.nodes[id];
      ++node.assignments;
      node.group = block.numa_nodes;
      podresources::MemoryTable& table = node.memory[block.type];
      const std::int64_t taken = std::min(left, table.free);
      table.free -= taken;
      table.reserved += taken;
      left -= taken;
    }
  }
}

MemoryManagerState Empty(const Value& node) {
  MemoryManagerState state;
  state.policy = "Static";
  for (const Value& numa : node["numa"].GetArray()) {
    podresources::MemoryNode& memory = state.nodes[numa["id"].GetInt()];
    memory.group = {numa["id"].GetInt()};
    std::int64_t plain = numa["memory"].GetInt64();
    if (numa.HasMember("hugepages")) {
      for (const auto& pages : numa["hugepages"].GetObject()) {
        const std::string name = pages.name.GetString();
        memory.memory[name.starts_with("hugepages-") ? name : "hugepages-" + name].allocatable =
            pages.value.GetInt64();
        plain -= pages.value.GetInt64();
      }
    }
    memory.memory["memory"].allocatable = plain;
  }
  if (node.HasMember("reserved_memory")) {
    for (const Value& reserved : node["reserved_memory"].GetArray()) {
      state.nodes[reserved["numa"].GetInt()].memory[reserved["type"].GetString()].allocatable -=
          reserved["bytes"].GetInt64();
    }
  }
  for (auto& [id, memory] : state.nodes) {
    for (auto& [type, table] : memory.memory) table.free = table.allocatable;
  }
  return state;
}

// The recorded table in words, and the state's in the same.
std::string Describe(const Value& recorded) {
  std::string text;
  for (const Value& node : recorded.GetArray()) {
    std::map<std::string, std::int64_t> free;
    for (const auto& type : node["free"].GetObject()) {
      free[type.name.GetString()] = type.value.GetInt64();
    }
    text += fmt::format("{}: {} of {{{}}}", node["numa"].GetInt(), node["assignments"].GetInt(),
                        Mask(node["group"]).ToString());
    for (const auto& [type, bytes] : free) text += fmt::format(" {} {}", type, bytes);
    text += '\n';
  }
  return text;
}
std::string Describe(const MemoryManagerState& state) {
  std::string text;
  for (const auto& [id, node] : state.nodes) {
    text += fmt::format("{}: {} of {{{}}}", id, node.assignments, node.group.ToString());
    for (const auto& [type, table] : node.memory) text += fmt::format(" {} {}", type, table.free);
    text += '\n';
  }
  return text;
}

class Replay {
 public:
  explicit Replay(const Value& node) : state_(Empty(node)) {}

  void Apply(const Value& event) {
    const std::string op = event["op"].GetString();
    if (op == "remove") {
      active_.erase(event.HasMember("uid") ? event["uid"].GetString()
                                           : event["pod"]["uid"].GetString());
      ++removed_;
      return;
    }
    if (op != "add" || !event["verdict"].HasMember("memory_state")) return;
    // The first thing that the kubelet does at an admission.
    state_ = ReleaseInactive(std::move(state_), active_);
    if (!event["verdict"]["admit"].GetBool()) return;
    Admit(event);
  }

  int compared() const { return compared_; }
  int after_removal() const { return after_removal_; }

 private:
  void Admit(const Value& event) {
    const Value& pod = event["pod"];
    const std::string uid = pod["uid"].GetString();
    const bool has_init = pod.HasMember("init") && !pod["init"].Empty();
    for (const Value& container : event["verdict"]["containers"].GetArray()) {
      const std::vector<MemoryBlock> blocks = Blocks(container);
      if (blocks.empty()) continue;
      // The table is recorded after the start, when init containers have given theirs back.
      const std::string name = container["name"].GetString();
      if (RunsOnce(pod, name) && !event.HasMember("not_started")) continue;
      state_.entries[uid][name] = blocks;
      Allocate(blocks, state_);
    }
    active_.insert(uid);
    const Value& recorded = event["verdict"]["memory_state"];
    // Blocks of init containers are recorded after the re-use by the next one, which is no matter
    // of ours: how they were filled cannot be told, so the recorded table is taken over.
    if (has_init) return TakeOver(recorded);
    EXPECT_EQ(Describe(state_), Describe(recorded)) << "pod " << uid;
    ++compared_;
    after_removal_ += removed_ > 0 ? 1 : 0;
    removed_ = 0;
  }

  static bool RunsOnce(const Value& pod, const std::string& name) {
    if (!pod.HasMember("init")) return false;
    for (const Value& init : pod["init"].GetArray()) {
      if (init["name"].GetString() != name) continue;
      return !(init.HasMember("sidecar") && init["sidecar"].GetBool());
    }
    return false;
  }

  void TakeOver(const Value& recorded) {
    for (const Value& node : recorded.GetArray()) {
      podresources::MemoryNode& ours = state_.nodes[node["numa"].GetInt()];
      ours.assignments = node["assignments"].GetInt();
      ours.group = Mask(node["group"]);
      for (const auto& type : node["free"].GetObject()) {
        podresources::MemoryTable& table = ours.memory[type.name.GetString()];
        table.free = type.value.GetInt64();
        table.reserved = table.allocatable - table.free;
      }
    }
  }

  MemoryManagerState state_;
  std::set<std::string> active_;
  int removed_ = 0;
  int compared_ = 0;
  int after_removal_ = 0;
};

class Recordings : public testing::TestWithParam<const char*> {};

TEST_P(Recordings, MemoryOfRemovedPodsIsFreedAsTheKubeletFreesIt) {
  SKIP_WITHOUT_SHARED();
  std::istringstream lines(Unzipped(fmt::format("{}/{}", *test::SharedFolder(), GetParam())));
  int compared = 0;
  int after_removal = 0;
  for (std::string line; std::getline(lines, line);) {
    rapidjson::Document sequence;
    sequence.Parse(line.c_str());
    ASSERT_FALSE(sequence.HasParseError());
    if (std::string(sequence["node"]["memory_policy"].GetString()) != "Static") continue;
    SCOPED_TRACE(fmt::format("seed {}", sequence["seed"].GetInt()));
    Replay replay(sequence["node"]);
    for (const Value& event : sequence["events"].GetArray()) replay.Apply(event);
    compared += replay.compared();
    after_removal += replay.after_removal();
  }
  EXPECT_GT(compared, 0);
  RecordProperty("compared", compared);
  RecordProperty("after_removal", after_removal);
  fmt::print("{}: {} tables compared, {} of them after a removal\n", GetParam(), compared,
             after_removal);
}

INSTANTIATE_TEST_SUITE_P(
    All, Recordings, testing::Values("admission/public_debug.jsonl.gz", "admission/named.jsonl.gz"),
    [](const auto& recording) { return std::string(recording.index == 0 ? "Public" : "Named"); });

}  // namespace
}  // namespace placement
