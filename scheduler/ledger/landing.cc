#include "scheduler/ledger/landing.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "scheduler/admission/admit.h"

namespace scheduler::ledger {
namespace {

using admission::At;
using admission::Bits;
using admission::Machine;
using admission::Mask;
using admission::Pool;
using admission::TopologyPolicy;
using admission::Verdict;
using admission::Wants;

// So many choices of devices are tried at most; where there are more, nothing is certain.
constexpr std::size_t kMaxChoices = 8;

bool OneBit(Mask mask) { return std::popcount(mask) == 1; }

Mask PlacesOf(const Verdict& verdict) {
  Mask places = 0;
  for (const admission::ContainerVerdict& container : verdict.containers) {
    places |= container.affinity;
  }
  return places;
}

bool WantsNothing(const Wants& wants) {
  return wants.cpus == 0 && wants.memory.empty() && wants.devices.empty() && !wants.unknown_memory;
}

// On one NUMA node nothing can be misaligned, but for devices that are on none.
bool IsStrict(const Machine& machine) {
  const TopologyPolicy policy = machine.settings.topology_policy;
  const bool nodes_matter =
      machine.numa_count() > 1 ||
      std::ranges::any_of(machine.devices, [](const admission::DeviceResource& resource) {
        return resource.aligned &&
               resource.on_node.front().Count() < static_cast<int>(resource.devices.size());
      });
  return nodes_matter &&
         (policy == TopologyPolicy::kRestricted || policy == TopologyPolicy::kSingleNumaNode);
}

bool WholePod(const Machine& machine) {
  return machine.settings.topology_policy != TopologyPolicy::kNone &&
         machine.settings.topology_scope == admission::TopologyScope::kPod;
}

// Memory is given container by container whatever the policy, and binds NUMA nodes together for
// the next one: room that others leave may make such a group where none would do.
bool SeveralGetMemory(const Machine& machine, const admission::Request& request) {
  if (machine.numa_count() == 1) return false;
  const bool managed = admission::ManagesPod(machine.settings, request);
  return std::ranges::count_if(request.containers, [&](const auto& container) {
           return !Wants(machine, container.demand, managed).memory.empty();
         }) > 1;
}

void AddOnce(Pool pool, std::vector<Pool>& pools) {
  if (std::ranges::find(pools, pool) == pools.end()) pools.push_back(std::move(pool));
}

// Takes so many off `free`, lowest first, as far as there are.
void TakeLowest(const Bits& from, std::int64_t count, Bits& taken) {
  from.ForEach([&](int position) {
    if (count-- > 0) taken.Set(position);
  });
}

}  // namespace

bool IsAnsweredAtOnce(const Machine& machine, const admission::Request& request) {
  if (!IsStrict(machine)) return !SeveralGetMemory(machine, request);
  return WholePod(machine) || !SeveralWantSomething(request);
}

bool SeveralWantSomething(const admission::Request& request) {
  return std::ranges::count_if(request.containers, [](const auto& container) {
           return !(container.demand == admission::Demand());
         }) > 1;
}

// Under scope pod, and where nothing is refused for being misaligned, the pod is one unit.
Lander::Lander(const admission::NodeState& node, const admission::Request& request)
    : node_(node), machine_(*node.machine), request_(request), strict_(IsStrict(*node.machine)) {
  const bool managed = admission::ManagesPod(machine_.settings, request);
  if (!strict_ || WholePod(machine_)) {
    admission::Demand whole = request.pod;
    for (const auto& amount : request.pod_init_memory) whole.memory.push_back(amount);
    AddUnit(request, whole, managed, false);
    return;
  }
  for (const admission::ContainerDemand& container : request.containers) {
    admission::Request alone = request;
    alone.containers = {container};
    AddUnit(std::move(alone), container.demand, managed, container.reuses());
  }
}

void Lander::AddUnit(admission::Request request, const admission::Demand& demand, bool managed,
                     bool reuses) {
  Wants wants(machine_, demand, managed);
  if (WantsNothing(wants)) return;
  std::int64_t most_cpus = wants.cpus;
  if (wants.cpus > 0) {
    std::int64_t sum = 0;
    for (const admission::ContainerDemand& container : request.containers) {
      sum += container.demand.cpus;
    }
    most_cpus = std::max(most_cpus, sum);
  }
  const Mask holders = Holders(wants);
  tied_ = tied_ || reuses;
  units_.push_back({std::move(request), std::move(wants), most_cpus, holders, reuses});
}

// By what is allocatable, whoever has it now.
Mask Lander::Holders(const Wants& wants) const {
  Mask holders = 0;
  for (int numa = 0; numa < machine_.numa_count(); ++numa) {
    const std::size_t at = At(numa);
    bool holds = (machine_.cpu.in_numa[at] - machine_.reserved_cpus).Count() >= wants.cpus;
    for (const auto& [type, bytes] : wants.memory) {
      holds = holds && machine_.memory[at][At(type)].allocatable >= bytes;
    }
    for (const auto& [resource, count] : wants.devices) {
      const admission::DeviceResource& facts = machine_.devices[At(resource)];
      holds = holds && (!facts.aligned || facts.on_node[at].Count() >= count);
    }
    if (holds) holders |= Mask{1} << numa;
  }
  return holders;
}

admission::NodeState Lander::With(const Pool& pool) const {
  return {.machine = node_.machine, .device_ids = node_.device_ids, .pool = pool, .pods = {}};
}

Landing Lander::From(const Pool& pool) const {
  if (!strict_) return Loose(pool);
  if (!FitsWhenEmpty()) return {.refused = true, .may_be_refused = true, .after = {}};
  if (tied_ && units_.size() > 1) return Tied(pool);
  Landing landing;
  landing.after = {pool};
  for (const Unit& unit : units_) {
    Landing next;
    for (const Pool& before : landing.after) Land(unit, before, next);
    landing.may_be_refused = landing.may_be_refused || next.may_be_refused;
    landing.after = std::move(next.after);
  }
  landing.refused = landing.may_be_refused && Answer(With(pool), request_).rejected();
  return landing;
}

// A pod that the node could not even take when empty never gets anything there.
bool Lander::FitsWhenEmpty() const {
  if (!strict_)
    return !Answer(admission::EmptyState({node_.machine, node_.device_ids}), request_).rejected();
  return machine_.settings.topology_policy != TopologyPolicy::kSingleNumaNode ||
         std::ranges::all_of(units_, [](const Unit& unit) { return unit.holders != 0; });
}

Landing Lander::FromAsItIs(const Pool& pool) const {
  Landing landing;
  admission::Alternatives all = AdmitAll(With(pool), request_, kMaxChoices);
  for (Verdict& verdict : all.verdicts) {
    if (verdict.rejected()) {
      landing.may_be_refused = true;
    } else {
      AddOnce(std::move(verdict.after), landing.after);
    }
  }
  landing.complete = all.complete;
  landing.refused = landing.after.empty() && all.complete;
  return landing;
}

// Whatever is free fits: only sums and memory count.
Landing Lander::Loose(const Pool& pool) const {
  Verdict verdict = Admit(With(pool), request_);
  const bool refused = verdict.rejected();
  if (refused && !FitsWhenEmpty()) return {.refused = true, .may_be_refused = true, .after = {}};
  if (refused) {
    verdict.after = pool;
    for (const Unit& unit : units_) OccupySums(unit, verdict.after);
  } else if (!units_.empty()) {
    const Bits taken = pool.cpus - verdict.after.cpus;
    TakeCpus(units_.front().most_cpus - taken.Count(), verdict.after);
  }
  const bool memory =
      std::ranges::any_of(units_, [](const Unit& unit) { return !unit.wants.memory.empty(); });
  if (memory && (refused || machine_.numa_count() > 1)) {
    for (Pool::NodeMemory& numa : verdict.after.memory) std::ranges::fill(numa.free, 0);
  }
  return {.refused = refused,
          .may_be_refused = refused || SeveralGetMemory(machine_, request_),
          .after = {std::move(verdict.after)}};
}

// The kubelet lets a container take over what an init container leaves only where that is, so the
// pod is asked for as a whole.
Landing Lander::Tied(const Pool& pool) const {
  admission::Alternatives all = AdmitAll(With(pool), request_, kMaxChoices);
  const auto is_certain = [this](const Verdict& verdict) {
    return !verdict.rejected() && !InitMayMove(verdict);
  };
  Landing landing;
  landing.refused = all.verdicts.front().rejected();
  landing.may_be_refused = !all.complete || !std::ranges::all_of(all.verdicts, is_certain);
  Verdict& verdict = all.verdicts.front();
  const bool settled =
      !landing.may_be_refused && all.verdicts.size() == 1 && OneBit(PlacesOf(verdict)) &&
      std::ranges::all_of(units_, [&](const Unit& unit) { return OneByOne(unit); });
  landing.after.push_back(settled ? std::move(verdict.after) : Worst(pool));
  return landing;
}

// An init container goes where it fits itself, once there is room: a place too narrow for the next
// container refuses the pod.
bool Lander::InitMayMove(const Verdict& verdict) const {
  return std::ranges::any_of(verdict.containers, [this](const auto& container) {
    const auto unit = std::ranges::find_if(units_, [&](const Unit& own) {
      return own.first_of_several && own.request.containers.front().name == container.name;
    });
    return unit != units_.end() && container.affinity != 0 &&
           (unit->holders & Preferred(container.affinity)) != 0;
  });
}

// The NUMA nodes that the kubelet may prefer to this place once they have room. With
// prefer-closest-numa-nodes one node may be closer to itself than another.
Mask Lander::Preferred(Mask place) const {
  return machine_.settings.prefer_closest_numa_nodes ? ~place : (place & -place) - 1;
}

// One unit, from here to every place that it may take.
void Lander::Land(const Unit& unit, const Pool& pool, Landing& landing) const {
  Verdict verdict = Admit(With(pool), unit.request);
  if (verdict.rejected()) {
    landing.may_be_refused = true;
    LandOnceOthersLeft(unit, pool, landing);
    return;
  }
  Mask place = verdict.containers.empty() ? 0 : verdict.containers.front().affinity;
  if (machine_.numa_count() == 1) place = 1;  // the kubelet says none where it is all of them
  if (place == 0) {
    AddOnce(std::move(verdict.after), landing.after);
    return;
  }
  if (!OneBit(place) || !OneByOne(unit)) {
    Pool after = pool;
    OccupyAll(unit, after);
    AddOnce(std::move(after), landing.after);
    return;
  }
  for (Mask places = place | (unit.holders & Preferred(place)); places != 0; places &= places - 1) {
    Pool after = pool;
    Occupy(unit, std::countr_zero(places), after);
    AddOnce(std::move(after), landing.after);
  }
}

// Where there is no room for it now, what leaves may make some.
void Lander::LandOnceOthersLeft(const Unit& unit, const Pool& pool, Landing& landing) const {
  if (unit.holders == 0 || !OneByOne(unit)) {
    Pool after = pool;
    OccupyAll(unit, after);
    return AddOnce(std::move(after), landing.after);
  }
  for (Mask places = unit.holders; places != 0; places &= places - 1) {
    Pool after = pool;
    Occupy(unit, std::countr_zero(places), after);
    AddOnce(std::move(after), landing.after);
  }
}

// Whether what it takes lies on the NUMA node of its place, so that places can be tried one by one.
bool Lander::OneByOne(const Unit& unit) const {
  if (machine_.settings.align_by_socket && unit.wants.cpus > 0) return false;
  return std::ranges::all_of(unit.wants.devices, [&](const auto& wanted) {
    return machine_.devices[At(wanted.first)].one_node_each;
  });
}

// CPUs whose siblings are reserved go last: full-pcpus-only does not count them, so that the least
// is left for it.
void Lander::Occupy(const Unit& unit, int numa, Pool& pool) const {
  const Bits free = pool.cpus & machine_.cpu.in_numa[At(numa)];
  Bits cpus(machine_.cpu.cpu_slots);
  TakeLowest(free - machine_.reserved_physical_cpus, unit.most_cpus, cpus);
  TakeLowest(free & machine_.reserved_physical_cpus, unit.most_cpus - cpus.Count(), cpus);
  pool.cpus -= cpus;
  Pool::NodeMemory& memory = pool.memory[At(numa)];
  for (const auto& [type, bytes] : unit.wants.memory) {
    memory.free[At(type)] = std::max<std::int64_t>(0, memory.free[At(type)] - bytes);
    memory.group = Mask{1} << numa;
    ++memory.assignments;
  }
  for (const auto& [resource, count] : unit.wants.devices) {
    const admission::DeviceResource& facts = machine_.devices[At(resource)];
    Pool::Devices& devices = pool.devices[At(resource)];
    const Bits available = devices.healthy - devices.allocated;
    Bits taken(static_cast<int>(facts.devices.size()));
    TakeLowest(facts.aligned ? available & facts.on_node[At(numa)] : available, count, taken);
    devices.allocated |= taken;
  }
}

void Lander::TakeCpus(std::int64_t count, Pool& pool) const {
  Bits cpus(machine_.cpu.cpu_slots);
  TakeLowest(pool.cpus, count, cpus);
  pool.cpus -= cpus;
}

// CPUs and devices wherever they are, as far as there are.
void Lander::OccupySums(const Unit& unit, Pool& pool) const {
  TakeCpus(unit.most_cpus, pool);
  for (const auto& [resource, count] : unit.wants.devices) {
    Pool::Devices& devices = pool.devices[At(resource)];
    Bits taken(static_cast<int>(machine_.devices[At(resource)].devices.size()));
    TakeLowest(devices.healthy - devices.allocated, count, taken);
    devices.allocated |= taken;
  }
}

void Lander::OccupyAll(const Unit& unit, Pool& pool) const {
  for (int numa = 0; numa < machine_.numa_count(); ++numa) Occupy(unit, numa, pool);
  if (unit.wants.memory.empty() || unit.holders != 0) return;
  for (Pool::NodeMemory& numa : pool.memory) std::ranges::fill(numa.free, 0);
}

Pool Lander::Worst(Pool pool) const {
  if (!strict_) {
    Landing landing = Loose(pool);
    return landing.after.empty() ? pool : std::move(landing.after.front());
  }
  for (const Unit& unit : units_) OccupyAll(unit, pool);
  return pool;
}

}  // namespace scheduler::ledger
