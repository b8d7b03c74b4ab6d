#include "cli/replay_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text_layout.h"
#include "cli/recording.h"
#include "placement/json_writer.h"
#include "scheduler/ledger/event_json.h"
#include "scheduler/ledger/ledger.h"

namespace cli {
namespace {

using scheduler::admission::At;
using scheduler::admission::Bits;
using scheduler::admission::NodeState;
using scheduler::ledger::Divergence;
using scheduler::ledger::DivergenceKind;
using scheduler::ledger::Event;
using scheduler::ledger::Ledger;
using scheduler::ledger::NodeView;
using scheduler::ledger::NodeViewPtr;
using scheduler::ledger::PodFacts;
using scheduler::ledger::Snapshot;
using scheduler::ledger::Waiting;

// What is expected to be free on one NUMA node.
struct Free {
  int numa_node = 0;
  int cpus = 0;
  std::map<std::string, std::int64_t> memory;
  std::map<std::string, int> devices;
};

std::vector<Free> FreeOf(const NodeState& state) {
  const scheduler::admission::Machine& machine = *state.machine;
  std::vector<Free> all;
  for (int numa = 0; numa < machine.numa_count(); ++numa) {
    Free free{machine.numa_ids[At(numa)], {}, {}, {}};
    free.cpus = state.pool.cpus.CountCommon(machine.cpu.in_numa[At(numa)]);
    for (std::size_t type = 0; type < machine.memory_types.size(); ++type) {
      if (!machine.memory[At(numa)][type].present) continue;
      free.memory[machine.memory_types[type]] = state.pool.memory[At(numa)].free[type];
    }
    for (std::size_t i = 0; i < machine.devices.size(); ++i) {
      const auto& facts = machine.devices[i];
      if (facts.on_node[At(numa)].None()) continue;
      const Bits available = state.pool.devices[i].healthy - state.pool.devices[i].allocated;
      free.devices[facts.name] = available.CountCommon(facts.on_node[At(numa)]);
    }
    all.push_back(std::move(free));
  }
  return all;
}

// One event and what it changed.
struct Step {
  int number = 0;
  Event event;
  std::string subject;
  std::vector<NodeViewPtr> changed;
  std::vector<std::string> gone;
};

// "namespace/name" of a pod, or the node that an event is about.
class Subjects {
 public:
  std::string Of(const Event& event) {
    return std::visit([this](const auto& what) { return Name(what); }, event.what);
  }
  // Of a pod that some event has told of; else its UID.
  std::string NameOf(const std::string& uid) const {
    const auto known = names_.find(uid);
    return known == names_.end() ? uid : known->second;
  }

 private:
  template <class OfNode>
  std::string Name(const OfNode& event) {
    return event.node;
  }
  std::string Name(const scheduler::ledger::TopologyChanged& event) { return event.nrt.name; }
  std::string Name(const scheduler::ledger::PlacementChanged& event) {
    return event.placement.node_name;
  }
  std::string Name(const scheduler::ledger::PodBound& event) { return OnNode(event.pod); }
  std::string Name(const scheduler::ledger::PodChanged& event) { return OnNode(event.pod); }
  std::string Name(const scheduler::ledger::PodGone& event) { return NameOf(event.uid); }
  std::string Name(const scheduler::ledger::PodRejected& event) {
    return fmt::format("{}: {}", NameOf(event.uid), event.reason);
  }
  std::string Name(const scheduler::ledger::LeaseTaken& event) {
    return fmt::format("{} on {}", Learn(event.pod), fmt::join(event.nodes, ", "));
  }
  std::string Name(const scheduler::ledger::LeaseEnded& event) { return NameOf(event.uid); }
  std::string Name(const scheduler::ledger::TimePassed&) { return ""; }

  std::string OnNode(const PodFacts& pod) {
    return fmt::format("{} on {}, {}", Learn(pod), pod.pod.node_name,
                       pod.terminating ? "terminating" : ToString(pod.phase));
  }
  std::string Learn(const PodFacts& pod) {
    return names_[pod.pod.uid] = pod.pod.namespace_name + "/" + pod.pod.name;
  }

  std::map<std::string, std::string> names_;
};

Step Apply(Event event, int number, Subjects& subjects, Ledger& ledger) {
  const Snapshot before = ledger.Take();
  Step step{.number = number, .event = std::move(event), .subject = "", .changed = {}, .gone = {}};
  step.subject = subjects.Of(step.event);
  ledger.Apply(step.event);
  const Snapshot after = ledger.Take();
  for (const NodeViewPtr& view : after.nodes()) {
    if (before.Find(view->name) != view.get()) step.changed.push_back(view);
  }
  for (const NodeViewPtr& view : before.nodes()) {
    if (after.Find(view->name) == nullptr) step.gone.push_back(view->name);
  }
  return step;
}

std::string FreeText(const NodeView& view) {
  if (view.expected == nullptr) return "no data";
  std::vector<std::string> nodes;
  for (const Free& free : FreeOf(*view.expected)) {
    std::string text = fmt::format("{}: {} cpu", free.numa_node, free.cpus);
    for (const auto& [resource, count] : free.devices) {
      text += fmt::format(" {} {}", count, resource.substr(resource.find('/') + 1));
    }
    for (const auto& [type, bytes] : free.memory) {
      text += fmt::format(" {} {}", base::FormatBytes(bytes), type);
    }
    nodes.push_back(std::move(text));
  }
  return fmt::format("free {}", fmt::join(nodes, ", "));
}

// What this step showed to be otherwise than expected.
std::vector<Divergence> DivergencesOf(const Step& step, const NodeView& view) {
  std::vector<Divergence> latest;
  for (const Divergence& divergence : view.divergences) {
    if (divergence.at == step.event.at) latest.push_back(divergence);
  }
  return latest;
}

void WriteText(const Step& step, const Subjects& subjects, std::ostream& out) {
  out << fmt::format("{:>6} {} {}", step.number, base::FormatTime(step.event.at),
                     KindOf(step.event));
  if (!step.subject.empty()) out << ": " << base::OneLine(step.subject);
  out << "\n";
  for (const NodeViewPtr& view : step.changed) {
    out << fmt::format("       {} {}: {}\n", base::OneLine(view->name), ToString(view->confidence),
                       FreeText(*view));
    for (const Waiting& pod : view->waiting) {
      out << fmt::format(
          "         {} {}{}\n", base::OneLine(subjects.NameOf(pod.uid)), ToString(pod.standing),
          pod.numa_nodes.empty() ? ", nowhere"
                                 : fmt::format(", NUMA {}", pod.numa_nodes.ToString()));
    }
    for (const auto& block : view->blocks) {
      out << fmt::format("         no such pod until {}: {}\n", base::FormatTime(block.until),
                         base::OneLine(block.reason));
    }
    for (const Divergence& divergence : DivergencesOf(step, *view)) {
      out << fmt::format("         {} {}: {}\n", ToString(divergence.kind),
                         base::OneLine(divergence.pod), base::OneLine(divergence.message));
    }
  }
  for (const std::string& node : step.gone) {
    out << fmt::format("       {} is gone\n", base::OneLine(node));
  }
}

void WriteFree(const NodeState& state, placement::JsonWriter& to) {
  to.BeginList();
  for (const Free& free : FreeOf(state)) {
    to.BeginMap();
    to.Key("numaNode");
    to.Int(free.numa_node);
    to.Key("cpus");
    to.Int(free.cpus);
    to.Key("memory");
    to.BeginMap();
    for (const auto& [type, bytes] : free.memory) {
      to.Key(type);
      to.Int(bytes);
    }
    to.EndMap();
    to.Key("devices");
    to.BeginMap();
    for (const auto& [resource, count] : free.devices) {
      to.Key(resource);
      to.Int(count);
    }
    to.EndMap();
    to.EndMap();
  }
  to.EndList();
}

void WriteView(const Step& step, const NodeView& view, placement::JsonWriter& to) {
  const auto text = [&](const char* key, const std::string& value) {
    to.Key(key);
    to.String(value);
  };
  to.BeginMap();
  text("name", view.name);
  text("confidence", ToString(view.confidence));
  if (view.expected != nullptr) {
    to.Key("free");
    WriteFree(*view.expected, to);
  }
  to.Key("waiting");
  to.BeginList();
  for (const Waiting& pod : view.waiting) {
    to.BeginMap();
    text("uid", pod.uid);
    text("standing", ToString(pod.standing));
    text("numaNodes", pod.numa_nodes.ToString());
    to.EndMap();
  }
  to.EndList();
  to.Key("blocks");
  to.Int(static_cast<std::int64_t>(view.blocks.size()));
  to.Key("divergences");
  to.BeginList();
  for (const Divergence& divergence : DivergencesOf(step, view)) {
    to.BeginMap();
    text("kind", ToString(divergence.kind));
    text("pod", divergence.pod);
    text("message", divergence.message);
    to.EndMap();
  }
  to.EndList();
  to.EndMap();
}

void WriteJson(const Step& step, std::ostream& out) {
  const auto to = placement::NewJsonWriter(false);
  to->BeginMap();
  to->Key("step");
  to->Int(step.number);
  to->Key("at");
  to->String(base::FormatTime(step.event.at));
  to->Key("kind");
  to->String(KindOf(step.event));
  to->Key("subject");
  to->String(step.subject);
  to->Key("nodes");
  to->BeginList();
  for (const NodeViewPtr& view : step.changed) WriteView(step, *view, *to);
  to->EndList();
  to->Key("gone");
  to->BeginList();
  for (const std::string& node : step.gone) to->String(node);
  to->EndList();
  to->EndMap();
  out << to->text() << "\n";
}

void WriteDivergences(const Ledger& ledger, std::ostream& out) {
  for (std::size_t kind = 0; kind < ledger.divergences().size(); ++kind) {
    if (ledger.divergences()[kind] == 0) continue;
    out << fmt::format("{:>6} {}\n", ledger.divergences()[kind],
                       ToString(static_cast<DivergenceKind>(kind)));
  }
}

// Steps that are about another node are applied and not shown.
bool IsAbout(Step& step, const std::string& node) {
  std::erase_if(step.changed, [&](const NodeViewPtr& view) { return view->name != node; });
  std::erase_if(step.gone, [&](const std::string& name) { return name != node; });
  return !step.changed.empty() || !step.gone.empty();
}

}  // namespace

int RunReplay(const ReplayLogOptions& options, std::ostream& out, std::ostream& err) {
  Ledger ledger;
  Subjects subjects;
  const absl::Status status =
      ForEachLine(options.log, [&](int number, const std::string& line) -> absl::Status {
        absl::StatusOr<Event> event = scheduler::ledger::ParseEvent(line);
        if (!event.ok()) {
          return absl::InvalidArgumentError(fmt::format("{} line {}: {}", options.log, number,
                                                        std::string(event.status().message())));
        }
        Step step = Apply(*std::move(event), number, subjects, ledger);
        if (options.node && !IsAbout(step, *options.node)) return absl::OkStatus();
        if (options.output == OutputFormat::kJson) {
          WriteJson(step, out);
        } else {
          WriteText(step, subjects, out);
        }
        return absl::OkStatus();
      });
  if (!status.ok()) {
    err << "plumbline replay: " << base::OneLine(std::string(status.message())) << "\n";
    return kExitWrongInput;
  }
  if (options.output == OutputFormat::kText) WriteDivergences(ledger, out);
  return kExitOk;
}

}  // namespace cli
