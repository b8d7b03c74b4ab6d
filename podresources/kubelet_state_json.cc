// The kubelet's three state files. RapidJSON with the iterative parser: nesting costs heap, never
// stack. Checksums are not verified: they hash Go's own rendering of the structure, which changes
// with the kubelet's release, so only the kubelet that wrote a file can recompute them.
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "podresources/kubelet_state.h"

namespace podresources {
namespace {

using rapidjson::Document;
using rapidjson::Value;

std::string_view Text(const Value& string) {
  return {string.GetString(), string.GetStringLength()};
}

absl::Status Wrong(std::string_view where, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, problem));
}

std::string Below(std::string_view where, std::string_view name) {
  return where.empty() ? std::string(name) : fmt::format("{}.{}", where, name);
}

absl::Status CheckNamesOnce(const Value& object) {
  std::vector<std::string_view> names;
  for (const auto& member : object.GetObject()) names.push_back(Text(member.name));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the key \"{}\" appears twice", *twice));
}

// JSON readers disagree on which of two equal keys counts; the kubelet never writes two.
absl::Status CheckNoDuplicates(const Value& root) {
  std::vector<const Value*> open = {&root};
  while (!open.empty()) {
    const Value& value = *open.back();
    open.pop_back();
    if (value.IsArray()) {
      for (const Value& element : value.GetArray()) open.push_back(&element);
    } else if (value.IsObject()) {
      RETURN_IF_ERROR(CheckNamesOnce(value));
      for (const auto& member : value.GetObject()) open.push_back(&member.value);
    }
  }
  return absl::OkStatus();
}

absl::Status ParseObject(std::string_view json, Document& document) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (json.empty()) return absl::InvalidArgumentError("the file is empty");
  document.Parse<kFlags>(json.data(), json.size());
  if (document.HasParseError()) {
    return absl::InvalidArgumentError(fmt::format("no JSON at byte {} of {}: {}",
                                                  document.GetErrorOffset(), json.size(),
                                                  GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) return absl::InvalidArgumentError("the JSON is not an object");
  return CheckNoDuplicates(document);
}

// A member of an object; nullptr if it is absent or null, as Go writes maps and lists without
// content.
const Value* Find(const Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || member->value.IsNull()) return nullptr;
  return &member->value;
}

// The kubelet writes all of its fields, except for empty maps of entries: one that is missing is
// damage, not zero.
absl::Status Require(const Value& object, const char* name, std::string_view where) {
  if (object.HasMember(name)) return absl::OkStatus();
  return Wrong(Below(where, name), "is missing");
}

absl::StatusOr<std::string> ReadText(const Value& object, const char* name,
                                     std::string_view where) {
  const Value* value = Find(object, name);
  if (value == nullptr) return Wrong(Below(where, name), "is missing");
  if (!value->IsString()) return Wrong(Below(where, name), "is not a string");
  return std::string(Text(*value));
}

// Calls visit(name, value) for each member of an optional object.
template <class Visit>
absl::Status ForEachMember(const Value* object, std::string_view where, const Visit& visit) {
  if (object == nullptr) return absl::OkStatus();
  if (!object->IsObject()) return Wrong(where, "is not an object");
  for (const auto& member : object->GetObject()) {
    RETURN_IF_ERROR(visit(std::string(Text(member.name)), member.value));
  }
  return absl::OkStatus();
}

template <class Visit>
absl::Status ForEachElement(const Value* array, std::string_view where, const Visit& visit) {
  if (array == nullptr) return absl::OkStatus();
  if (!array->IsArray()) return Wrong(where, "is not a list");
  for (const Value& element : array->GetArray()) RETURN_IF_ERROR(visit(element));
  return absl::OkStatus();
}

absl::StatusOr<base::CpuSet> ReadCpus(const Value& value, std::string_view where) {
  if (!value.IsString()) return Wrong(where, "is not a string");
  absl::StatusOr<base::CpuSet> cpus = base::CpuSet::Parse(Text(value));
  if (!cpus.ok()) return Wrong(where, std::string(cpus.status().message()));
  return cpus;
}

absl::StatusOr<std::int64_t> ReadAmount(const Value& object, const char* name,
                                        std::string_view where) {
  const Value* value = Find(object, name);
  if (value == nullptr) return Wrong(Below(where, name), "is missing");
  if (!value->IsInt64() || value->GetInt64() < 0) {
    return Wrong(Below(where, name), "is not a number from 0 to 2^63-1");
  }
  return value->GetInt64();
}

absl::StatusOr<base::NumaMask> ReadNumaNodes(const Value* array, std::string_view where) {
  base::NumaMask nodes;
  RETURN_IF_ERROR(ForEachElement(array, where, [&](const Value& id) -> absl::Status {
    if (id.IsInt64() && nodes.Insert(id.GetInt64())) return absl::OkStatus();
    return Wrong(where, "has an element that is no NUMA node id");
  }));
  return nodes;
}

// Kubelet 1.37 writes everything a second time, as text under "data", and goes by that one.
absl::StatusOr<bool> ParseNested(const Value& document, Document& nested) {
  const Value* data = Find(document, "data");
  if (data == nullptr) return false;
  if (!data->IsString()) return Wrong("data", "is not a string");
  const absl::Status parsed = ParseObject(Text(*data), nested);
  if (!parsed.ok()) return Wrong("data", std::string(parsed.message()));
  return true;
}

// --- cpu_manager_state ---

absl::Status ReadCpuEntry(const std::string& uid, const Value& value, CpuManagerState& state) {
  const std::string where = Below("entries", uid);
  if (value.IsString()) {
    ASSIGN_OR_RETURN(state.entries[uid][""], ReadCpus(value, where));
    return absl::OkStatus();
  }
  std::map<std::string, base::CpuSet>& containers = state.entries[uid];
  return ForEachMember(&value, where, [&](const std::string& name, const Value& cpus) {
    absl::StatusOr<base::CpuSet> set = ReadCpus(cpus, Below(where, name));
    if (!set.ok()) return set.status();
    containers[name] = *std::move(set);
    return absl::OkStatus();
  });
}

absl::StatusOr<CpuManagerState> ReadCpuState(const Value& root) {
  CpuManagerState state;
  ASSIGN_OR_RETURN(state.policy, ReadText(root, "policyName", ""));
  RETURN_IF_ERROR(Require(root, "defaultCpuSet", ""));
  ASSIGN_OR_RETURN(state.default_cpus, ReadCpus(root["defaultCpuSet"], "defaultCpuSet"));
  RETURN_IF_ERROR(ForEachMember(
      Find(root, "entries"), "entries",
      [&](const std::string& uid, const Value& value) { return ReadCpuEntry(uid, value, state); }));
  RETURN_IF_ERROR(ForEachMember(Find(root, "podEntries"), "podEntries",
                                [&](const std::string& uid, const Value& value) -> absl::Status {
                                  if (!value.IsObject())
                                    return Wrong(Below("podEntries", uid), "is not an object");
                                  base::CpuSet& cpus = state.pod_entries[uid];
                                  if (const Value* set = Find(value, "cpuSet")) {
                                    ASSIGN_OR_RETURN(cpus,
                                                     ReadCpus(*set, Below("podEntries", uid)));
                                  }
                                  return absl::OkStatus();
                                }));
  return state;
}

// --- memory_manager_state ---

absl::StatusOr<MemoryTable> ReadMemoryTable(const Value& value, const std::string& where) {
  if (!value.IsObject()) return Wrong(where, "is not an object");
  MemoryTable table;
  ASSIGN_OR_RETURN(table.total, ReadAmount(value, "total", where));
  ASSIGN_OR_RETURN(table.system_reserved, ReadAmount(value, "systemReserved", where));
  ASSIGN_OR_RETURN(table.allocatable, ReadAmount(value, "allocatable", where));
  ASSIGN_OR_RETURN(table.reserved, ReadAmount(value, "reserved", where));
  ASSIGN_OR_RETURN(table.free, ReadAmount(value, "free", where));
  return table;
}

absl::StatusOr<MemoryNode> ReadMemoryNode(const Value& value, const std::string& where) {
  if (!value.IsObject()) return Wrong(where, "is not an object");
  MemoryNode node;
  ASSIGN_OR_RETURN(const std::int64_t assignments, ReadAmount(value, "numberOfAssignments", where));
  if (assignments > INT32_MAX) return Wrong(Below(where, "numberOfAssignments"), "is too large");
  node.assignments = static_cast<int>(assignments);
  RETURN_IF_ERROR(Require(value, "cells", where));
  ASSIGN_OR_RETURN(node.group, ReadNumaNodes(Find(value, "cells"), Below(where, "cells")));
  RETURN_IF_ERROR(Require(value, "memoryMap", where));
  const std::string map = Below(where, "memoryMap");
  RETURN_IF_ERROR(ForEachMember(Find(value, "memoryMap"), map,
                                [&](const std::string& type, const Value& table) {
                                  auto read = ReadMemoryTable(table, Below(map, type));
                                  if (read.ok()) node.memory[type] = *read;
                                  return read.status();
                                }));
  return node;
}

absl::StatusOr<MemoryBlock> ReadBlock(const Value& value, const std::string& where) {
  if (!value.IsObject()) return Wrong(where, "has an element that is not an object");
  MemoryBlock block;
  ASSIGN_OR_RETURN(block.type, ReadText(value, "type", where));
  ASSIGN_OR_RETURN(block.bytes, ReadAmount(value, "size", where));
  RETURN_IF_ERROR(Require(value, "numaAffinity", where));
  ASSIGN_OR_RETURN(block.numa_nodes, ReadNumaNodes(Find(value, "numaAffinity"), where));
  return block;
}

absl::StatusOr<std::vector<MemoryBlock>> ReadBlocks(const Value* array, const std::string& where) {
  std::vector<MemoryBlock> blocks;
  RETURN_IF_ERROR(ForEachElement(array, where, [&](const Value& value) {
    absl::StatusOr<MemoryBlock> block = ReadBlock(value, where);
    if (!block.ok()) return block.status();
    blocks.push_back(*std::move(block));
    return absl::OkStatus();
  }));
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

absl::Status ReadMemoryEntry(const std::string& uid, const Value& value,
                             MemoryManagerState& state) {
  const std::string where = Below("entries", uid);
  auto& containers = state.entries[uid];
  return ForEachMember(&value, where, [&](const std::string& name, const Value& blocks) {
    auto read = ReadBlocks(&blocks, Below(where, name));
    if (!read.ok()) return read.status();
    containers[name] = *std::move(read);
    return absl::OkStatus();
  });
}

absl::Status ReadMachineState(const Value& root, MemoryManagerState& state) {
  return ForEachMember(Find(root, "machineState"), "machineState",
                       [&](const std::string& key, const Value& value) -> absl::Status {
                         const std::string where = Below("machineState", key);
                         const std::optional<std::int64_t> id =
                             base::ParseNumber<std::int64_t>(key);
                         if (!id || !base::NumaMask::Fits(*id))
                           return Wrong(where, "is no NUMA node id");
                         ASSIGN_OR_RETURN(MemoryNode node, ReadMemoryNode(value, where));
                         // "1" and "01" are different keys and one node.
                         if (!state.nodes.emplace(static_cast<int>(*id), std::move(node)).second) {
                           return Wrong(where, "names a NUMA node that was named before");
                         }
                         return absl::OkStatus();
                       });
}

absl::StatusOr<MemoryManagerState> ReadMemoryState(const Value& root) {
  MemoryManagerState state;
  ASSIGN_OR_RETURN(state.policy, ReadText(root, "policyName", ""));
  RETURN_IF_ERROR(Require(root, "machineState", ""));
  RETURN_IF_ERROR(ReadMachineState(root, state));
  RETURN_IF_ERROR(ForEachMember(Find(root, "entries"), "entries",
                                [&](const std::string& uid, const Value& value) {
                                  return ReadMemoryEntry(uid, value, state);
                                }));
  RETURN_IF_ERROR(ForEachMember(Find(root, "podEntries"), "podEntries",
                                [&](const std::string& uid, const Value& value) -> absl::Status {
                                  const std::string where = Below("podEntries", uid);
                                  if (!value.IsObject()) return Wrong(where, "is not an object");
                                  ASSIGN_OR_RETURN(state.pod_entries[uid],
                                                   ReadBlocks(Find(value, "memoryBlocks"), where));
                                  return absl::OkStatus();
                                }));
  return state;
}

// --- kubelet_internal_checkpoint ---

using DevicesById = std::map<std::string, Device>;

absl::Status AddDevices(const Value& ids, const std::string& resource,
                        std::optional<std::int64_t> numa_node, const std::string& where,
                        DevicesById& devices) {
  return ForEachElement(&ids, where, [&](const Value& id) -> absl::Status {
    if (!id.IsString()) return Wrong(where, "has a device id that is not a string");
    Device& device = devices[std::string(Text(id))];
    device.resource = resource;
    device.id = std::string(Text(id));
    if (numa_node && !device.numa_nodes.Insert(*numa_node)) device.unknown_node = true;
    return absl::OkStatus();
  });
}

// By NUMA node, {"0": [ids], "-1": [ids]}, where -1 is a device without topology; kubelets up to
// 1.19 wrote a plain list.
absl::Status ReadDeviceIds(const Value* ids, const std::string& resource, const std::string& where,
                           DevicesById& devices) {
  if (ids != nullptr && ids->IsArray()) {
    return AddDevices(*ids, resource, std::nullopt, where, devices);
  }
  return ForEachMember(ids, where, [&](const std::string& key, const Value& list) -> absl::Status {
    std::optional<std::int64_t> node = base::ParseNumber<std::int64_t>(key);
    if (!node) return Wrong(Below(where, key), "is no NUMA node id");
    if (*node == -1) node = std::nullopt;
    if (list.IsNull()) return absl::OkStatus();
    return AddDevices(list, resource, node, Below(where, key), devices);
  });
}

// UID, container, resource, id: entries that repeat become one device.
using DeviceTable = ByPodAndContainer<std::map<std::string, DevicesById>>;

absl::Status ReadDeviceEntry(const Value& entry, DeviceTable& table) {
  const std::string where = "Data.PodDeviceEntries";
  if (!entry.IsObject()) return Wrong(where, "has an element that is not an object");
  ASSIGN_OR_RETURN(const std::string uid, ReadText(entry, "PodUID", where));
  ASSIGN_OR_RETURN(const std::string container, ReadText(entry, "ContainerName", where));
  ASSIGN_OR_RETURN(const std::string resource, ReadText(entry, "ResourceName", where));
  RETURN_IF_ERROR(Require(entry, "DeviceIDs", where));
  return ReadDeviceIds(Find(entry, "DeviceIDs"), resource,
                       fmt::format("{}[{}/{}].DeviceIDs", where, uid, container),
                       table[uid][container][resource]);
}

absl::Status ReadRegistered(const Value& data, DeviceCheckpoint& checkpoint) {
  const std::string where = "Data.RegisteredDevices";
  return ForEachMember(
      Find(data, "RegisteredDevices"), where,
      [&](const std::string& resource, const Value& list) -> absl::Status {
        std::vector<std::string>& ids = checkpoint.registered[resource];
        if (list.IsNull()) return absl::OkStatus();
        RETURN_IF_ERROR(ForEachElement(&list, Below(where, resource), [&](const Value& id) {
          if (!id.IsString()) return Wrong(where, "has a device id that is not a string");
          ids.emplace_back(Text(id));
          return absl::OkStatus();
        }));
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        return absl::OkStatus();
      });
}

}  // namespace

absl::StatusOr<CpuManagerState> ParseCpuManagerState(const std::string& json) {
  Document document;
  RETURN_IF_ERROR(ParseObject(json, document));
  Document nested;
  ASSIGN_OR_RETURN(const bool has_nested, ParseNested(document, nested));
  return ReadCpuState(has_nested ? nested : document);
}

absl::StatusOr<MemoryManagerState> ParseMemoryManagerState(const std::string& json) {
  Document document;
  RETURN_IF_ERROR(ParseObject(json, document));
  Document nested;
  ASSIGN_OR_RETURN(const bool has_nested, ParseNested(document, nested));
  return ReadMemoryState(has_nested ? nested : document);
}

absl::StatusOr<DeviceCheckpoint> ParseDeviceCheckpoint(const std::string& json) {
  Document document;
  RETURN_IF_ERROR(ParseObject(json, document));
  const Value* data = Find(document, "Data");
  if (data == nullptr || !data->IsObject()) return Wrong("Data", "is missing or not an object");
  RETURN_IF_ERROR(Require(*data, "PodDeviceEntries", "Data"));
  RETURN_IF_ERROR(Require(*data, "RegisteredDevices", "Data"));
  DeviceTable table;
  RETURN_IF_ERROR(
      ForEachElement(Find(*data, "PodDeviceEntries"), "Data.PodDeviceEntries",
                     [&](const Value& entry) { return ReadDeviceEntry(entry, table); }));
  DeviceCheckpoint checkpoint;
  for (auto& [uid, containers] : table) {
    for (auto& [container, resources] : containers) {
      std::vector<Device>& devices = checkpoint.entries[uid][container];
      for (auto& [resource, by_id] : resources) {
        for (auto& [id, device] : by_id) devices.push_back(std::move(device));
      }
    }
  }
  RETURN_IF_ERROR(ReadRegistered(*data, checkpoint));
  return checkpoint;
}

}  // namespace podresources
