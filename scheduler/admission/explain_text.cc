#include "scheduler/admission/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/admission/kubelet_limits.h"

namespace scheduler::admission {
namespace {

using kube::IsMemory;

// "64 GiB", "12.5 GiB": at most one digit after the point, rounded down, or up for what is needed.
std::string Bytes(std::int64_t bytes, bool up) {
  static constexpr std::array<std::pair<int, const char*>, 4> kUnits = {
      {{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  for (const auto& [shift, name] : kUnits) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (bytes < unit || (shift == 40 && bytes % unit != 0)) continue;  // 1.5 TiB is 1536 GiB
    const std::int64_t rest = bytes % unit;
    std::int64_t tenths = (rest * 10 + (up ? unit - 1 : 0)) / unit;
    const std::int64_t whole = bytes / unit + tenths / 10;
    tenths %= 10;
    return tenths == 0 ? fmt::format("{} {}", whole, name)
                       : fmt::format("{}.{} {}", whole, tenths, name);
  }
  return fmt::format("{} bytes", bytes);
}

// "4 GPUs", "1 CPU", "64 GiB of memory", "2 GiB of 1Gi huge pages", "3 nic".
std::string Amount(const std::string& resource, std::int64_t amount, bool up) {
  if (resource == kube::kMemory) return Bytes(amount, up) + " of memory";
  if (kube::IsHugePages(resource)) {
    return fmt::format("{} of {} huge pages", Bytes(amount, up),
                       resource.substr(resource.find('-') + 1));
  }
  const std::string name = ShortName(resource);
  const bool plural = amount != 1 && (name == "CPU" || name == "GPU");
  return fmt::format("{} {}{}", amount, name, plural ? "s" : "");
}

std::string Needed(const ResourceNumbers& numbers) {
  return Amount(numbers.resource, numbers.needed, true);
}

// "a", "a and b", "a, b and c".
std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

const char* PolicyName(const Machine& machine) {
  return ToString(machine.settings.topology_policy);
}

class Describer {
 public:
  Describer(const NodeState& state, const Outcome& outcome, const Explanation& found)
      : machine_(*state.machine), pool_(state.pool), outcome_(outcome), found_(found) {
    for (const ResourceNumbers& numbers : found_.resources) {
      if (found_.resource.empty() || numbers.resource == found_.resource)
        about_.push_back(&numbers);
    }
  }

  Texts Run() const {
    Texts texts;
    texts.summary = Summary();
    texts.detail = texts.summary + Detail();
    if (!found_.container.empty()) {
      texts.detail = fmt::format("container {}: {}", found_.container, texts.detail);
    }
    if (!outcome_.verified_version) texts.detail += " (unverified version of the kubelet)";
    return texts;
  }

 private:
  std::string Summary() const {
    switch (found_.code) {
      case Why::kFits:
        return "the pod fits";
      case Why::kKubeletCannot:
        return LimitSentence(machine_, outcome_.limit);
      case Why::kOutOf:
        return "the node's allocatable resources are used up";
      case Why::kReusedInitResources:
        return "what finished init containers keep leaves no room for a later container";
      case Why::kEmptyPodPool:
        return fmt::format(
            "the pod's containers with {} of their own leave none of the pod's to the others",
            found_.resource == kube::kCpu ? "CPUs" : "memory");
      case Why::kSmtAlignment:
        return SmtAlignment();
      case Why::kWidthsDisagree:
        return WidthsDisagree();
      case Why::kNeverFits:
        return NeverFits();
      case Why::kNoFreeDevice:
      case Why::kNotEnoughCpus:
        return about_.front()->needed <= 1
                   ? fmt::format("no {} is free", ShortName(about_.front()->resource))
                   : fmt::format("fewer than {} are free", All());
      case Why::kNotEnoughMemory:
        return fmt::format("less than {} is free", All());
      case Why::kMemoryGroup:
        return MemoryGroup();
      case Why::kFreeButSpread:
        return FreeButSpread();
      case Why::kNotTogether:
        return NotTogether();
    }
    return "";
  }

  // All that is asked for, of the resources that matter.
  std::string All() const {
    std::vector<std::string> parts;
    for (const ResourceNumbers* numbers : about_) {
      const bool none = numbers->needed == 0 && !IsMemory(numbers->resource);
      parts.push_back(none ? Amount(numbers->resource, 1, true) : Needed(*numbers));
    }
    return Join(parts);
  }

  // "1 GPU is", "4 GiB of memory is", but "4 GPUs are".
  static bool IsSingular(const ResourceNumbers& numbers) {
    return numbers.needed == 1 || IsMemory(numbers.resource);
  }

  std::string AllAre() const {
    const bool one = about_.size() == 1 && IsSingular(*about_.front());
    return All() + (one ? " is" : " are");
  }

  std::string SmtAlignment() const {
    const int threads = machine_.cpu.cpus_per_core;
    if (threads > 0 && about_.front()->needed % threads != 0) {
      return fmt::format("{} not whole cores of {} threads", AllAre(), threads);
    }
    return found_.fits_empty_node
               ? fmt::format("fewer than {} are free on whole cores", All())
               : fmt::format("fewer than {} are on whole cores without a reserved CPU", All());
  }

  // "…: 6 GPUs need 2, 8 CPUs and 1 GiB of memory need 1".
  std::string WidthsDisagree() const {
    std::map<int, std::vector<const ResourceNumbers*>, std::greater<>> by_width;
    for (const ResourceNumbers* numbers : about_) {
      if (numbers->width > 0) by_width[numbers->width].push_back(numbers);
    }
    std::vector<std::string> parts;
    for (const auto& [width, group] : by_width) {
      std::vector<std::string> amounts;
      for (const ResourceNumbers* numbers : group) amounts.push_back(Needed(*numbers));
      const bool one = group.size() == 1 && IsSingular(*group.front());
      parts.push_back(fmt::format("{} {} {}", Join(amounts), one ? "needs" : "need", width));
    }
    std::string text =
        fmt::format("under policy restricted all must need the same number of NUMA nodes: {}",
                    fmt::join(parts, ", "));
    if (found_.least_cpus) {
      text += fmt::format("; with {} it would be admitted",
                          Amount(kube::kCpu, *found_.least_cpus, true));
    }
    return text;
  }

  std::string NeverFits() const {
    std::string text;
    if (about_.size() == 1 &&
        about_.front()->free < std::max<std::int64_t>(about_.front()->needed, 1)) {
      text = fmt::format("the node never has {} to give", All());
    } else if (OneNumaNodeLacks()) {
      text = fmt::format("no NUMA node has {}{}, even when empty", All(), Together());
    } else {
      text = fmt::format("policy {} never admits {}{}", PolicyName(machine_), All(), Together());
    }
    if (!found_.admitting_policy.empty()) {
      text += fmt::format("; policy {} would admit the pod", found_.admitting_policy);
    }
    return text;
  }

  const char* Together() const { return about_.size() > 1 ? " together" : ""; }

  // Whether the pod must be on one NUMA node and none has all that is asked for.
  bool OneNumaNodeLacks() const {
    const bool one = machine_.settings.topology_policy == TopologyPolicy::kSingleNumaNode ||
                     std::ranges::all_of(about_, [](const ResourceNumbers* numbers) {
                       return numbers->width <= 1;
                     });
    if (!one || machine_.settings.topology_policy == TopologyPolicy::kNone) return false;
    for (std::size_t node = 0; node < At(machine_.numa_count()); ++node) {
      const bool all = std::ranges::all_of(about_, [&](const ResourceNumbers* numbers) {
        return numbers->numa.empty() || numbers->numa[node].short_by == 0;
      });
      if (all) return false;
    }
    return true;
  }

  std::string MemoryGroup() const {
    std::vector<std::string> parts;
    for (const ResourceNumbers* numbers : about_) {
      if (IsMemory(numbers->resource)) parts.push_back(Needed(*numbers));
    }
    return fmt::format("{} is free, but on NUMA nodes that are tied to other pods' memory",
                       Join(parts));
  }

  std::string FreeButSpread() const {
    const ResourceNumbers& numbers = *about_.front();
    if (!numbers.nearest || numbers.short_by == 0) {
      return fmt::format("{} free, but not on NUMA nodes that policy {} accepts", AllAre(),
                         PolicyName(machine_));
    }
    return numbers.width == 1 ? fmt::format("no NUMA node has {} free", All())
                              : fmt::format("no {} NUMA nodes have {} free", numbers.width, All());
  }

  std::string NotTogether() const {
    if (OneNumaNodeLacks()) return fmt::format("no NUMA node has {} free together", All());
    return fmt::format("{} free, but not together on NUMA nodes that policy {} accepts", AllAre(),
                       PolicyName(machine_));
  }

  // What follows the summary: the numbers of the NUMA nodes, and what ties their memory.
  std::string Detail() const {
    if (about_.empty() || found_.code == Why::kWidthsDisagree) return "";
    std::vector<std::string> parts;
    for (std::size_t node = 0; node < At(machine_.numa_count()); ++node) {
      const std::string has = Has(node);
      if (!has.empty()) {
        parts.push_back(fmt::format("NUMA node {} has {}", machine_.numa_ids[node], has));
      }
    }
    for (const ResourceNumbers* numbers : about_) {
      if (numbers->numa.empty()) {
        parts.push_back(Amount(numbers->resource, numbers->free, false) + " in all");
      } else if (numbers->width > 1 && numbers->short_by > 0) {
        parts.push_back(fmt::format("NUMA nodes {} come closest, {} short",
                                    numbers->nearest->ToString(),
                                    Amount(numbers->resource, numbers->short_by, true)));
      }
    }
    if (found_.code == Why::kMemoryGroup) AddTies(parts);
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? ": " : ", ") + part;
    return text;
  }

  // "2 GPUs (2 short) and 40 CPUs".
  std::string Has(std::size_t node) const {
    std::vector<std::string> parts;
    for (const ResourceNumbers* numbers : about_) {
      if (numbers->numa.empty()) continue;
      const ResourceNumbers::Numa& numa = numbers->numa[node];
      std::string part = Amount(numbers->resource, numa.free, false);
      if (numa.short_by > 0) part += fmt::format(" ({} short)", Short(numbers->resource, numa));
      parts.push_back(std::move(part));
    }
    return Join(parts);
  }

  static std::string Short(const std::string& resource, const ResourceNumbers::Numa& numa) {
    return IsMemory(resource) ? Bytes(numa.short_by, true) : std::to_string(numa.short_by);
  }

  void AddTies(std::vector<std::string>& parts) const {
    for (std::size_t node = 0; node < pool_.memory.size(); ++node) {
      const Pool::NodeMemory& memory = pool_.memory[node];
      if (std::popcount(memory.group) > 1 &&
          std::countr_zero(memory.group) == static_cast<int>(node)) {
        parts.push_back(fmt::format("NUMA nodes {} give their memory together",
                                    machine_.ToIds(memory.group).ToString()));
      } else if (std::popcount(memory.group) == 1 && memory.assignments > 0) {
        parts.push_back(
            fmt::format("NUMA node {} gives its memory alone", machine_.numa_ids[node]));
      }
    }
  }

  const Machine& machine_;
  const Pool& pool_;
  const Outcome& outcome_;
  const Explanation& found_;
  std::vector<const ResourceNumbers*> about_;
};

}  // namespace

std::string ShortName(const std::string& resource) {
  if (resource == kube::kCpu) return "CPU";
  const std::string last = resource.substr(resource.rfind('/') + 1);
  return last == "gpu" ? "GPU" : last;
}

Texts Describe(const NodeState& state, const Outcome& outcome, const Explanation& found) {
  return Describer(state, outcome, found).Run();
}

}  // namespace scheduler::admission
