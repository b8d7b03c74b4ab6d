#include "scheduler/admission/cpu_take.h"

#include <algorithm>
#include <utility>

#include "scheduler/admission/release.h"

namespace scheduler::admission {
namespace {

// Positions of the parts that hold any of `within`, fewest available CPUs first, then by position.
void AppendSorted(const std::vector<Bits>& parts, const Bits& available, const Bits* within,
                  Order& order) {
  absl::InlinedVector<std::pair<int, int>, 16> counted;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const int count = parts[part].CountCommon(available);
    if (count == 0 || (within != nullptr && (parts[part] & *within).CountCommon(available) == 0)) {
      continue;
    }
    counted.push_back({count, static_cast<int>(part)});
  }
  std::sort(counted.begin(), counted.end());
  for (const auto& [count, part] : counted) order.push_back(part);
}

// Collects CPUs. The kubelet subtracts what it takes from what it needs even where it takes a CPU
// twice or one that is not free, as happens on asymmetric machines; so does this.
class Accumulator {
 public:
  Accumulator(const Machine& machine, const Bits& available, int need)
      : cpu_(machine.cpu),
        minor_(machine.settings.minor_version),
        spread_(machine.settings.distribute_cpus_across_cores),
        left_(available),
        taken_(machine.cpu.cpu_slots),
        need_(need) {}

  bool Satisfied() const { return need_ < 1; }
  bool Failed() const { return need_ > left_.Count(); }
  Bits Taken() && { return std::move(taken_); }

  void TakeWholeNumaNodes() {
    for (const int node : NumaOrder(cpu_, left_)) {
      MarkFree(left_.CountCommon(cpu_.in_numa[At(node)]) == cpu_.in_numa[At(node)].Count(), node);
    }
    TakeMarked(cpu_.in_numa);
  }
  void TakeWholeSockets() {
    for (const int socket : SocketOrder(cpu_, left_)) {
      const Bits& own = cpu_.in_socket[At(socket)];
      const int whole = KnowsRealSizes(minor_) ? own.Count() : cpu_.cpus_per_socket;
      MarkFree(left_.CountCommon(own) == whole, socket);
    }
    TakeMarked(cpu_.in_socket);
  }
  void TakeUncores() {
    const Order order = UncoreOrder();
    if (TakesWholeUncoresFirst(minor_)) TakeWholeUncores();
    for (const int uncore : order) {
      if (!TakesWholeUncoresFirst(minor_) && need_ >= cpu_.cpus_per_uncore) TakeWholeUncores();
      if (Satisfied()) return;
      TakePartOfUncore(uncore);
      if (Satisfied()) return;
    }
  }
  void TakeWholeCores() {
    if (spread_) return;
    const bool real = KnowsRealSizes(minor_);
    ForEachUnit([&](const Bits&, const std::vector<int>& cores) {
      // Free cores of the average size are in order of id as they are.
      const auto mark = [&](int core) {
        const Bits& own = cpu_.in_core[At(core)];
        MarkFree(left_.CountCommon(own) == (real ? own.Count() : cpu_.cpus_per_core), core);
      };
      if (real) {
        for (const int core : Sorted(cores)) mark(core);
      } else {
        for (const int core : cores) mark(core);
      }
    });
    TakeMarked(cpu_.in_core);
  }
  void TakeSingleCpus() {
    CpuOrder order;
    if (spread_) {
      for (const int socket : SocketOrder(cpu_, left_)) AppendSpread(socket, order);
    } else {
      ForEachUnit([&](const Bits&, const std::vector<int>& cores) { AppendByCores(cores, order); });
    }
    for (const int id : order) {
      taken_.Set(id);
      left_.Clear(id);
      if (--need_ < 1) return;
    }
  }

 private:
  using CpuOrder = absl::InlinedVector<int, 256>;

  void MarkFree(bool is_free, int part) {
    if (is_free) marked_.push_back(part);
  }
  void Take(const Bits& cpus) {
    taken_ |= cpus;
    left_ -= cpus;
    need_ -= cpus.Count();
  }
  void TakeMarked(const std::vector<Bits>& parts) {
    for (const int part : marked_) {
      if (need_ >= parts[At(part)].Count()) Take(parts[At(part)]);
    }
    marked_.clear();
  }
  // Cores are gone through socket by socket where a NUMA node may hold several sockets, otherwise
  // NUMA node by NUMA node.
  template <class Visit>
  void ForEachUnit(Visit visit) const {
    if (cpu_.numa_first()) {
      for (const int socket : SocketOrder(cpu_, left_)) {
        visit(cpu_.in_socket[At(socket)], cpu_.cores_in_socket[At(socket)]);
      }
    } else {
      for (const int node : NumaOrder(cpu_, left_)) {
        visit(cpu_.in_numa[At(node)], cpu_.cores_in_numa[At(node)]);
      }
    }
  }
  // The available CPUs of these cores, core by core.
  void AppendByCores(const std::vector<int>& cores, CpuOrder& order) const {
    for (const int core : Sorted(cores)) {
      (left_ & cpu_.in_core[At(core)]).ForEach([&](int id) { order.push_back(id); });
    }
  }
  // Those of a socket with distribute-cpus-across-cores (sortAvailableCPUsSpread).
  void AppendSpread(int socket, CpuOrder& order) const {
    if (!SpreadsCoreByCore(minor_)) {
      (left_ & cpu_.in_socket[At(socket)]).ForEach([&](int id) { order.push_back(id); });
      return;
    }
    const Order cores = Sorted(cpu_.cores_in_socket[At(socket)]);
    std::vector<Bits> left;
    for (const int core : cores) left.push_back(left_ & cpu_.in_core[At(core)]);
    for (bool more = true; more;) {
      more = false;
      for (Bits& core : left) {
        const int id = core.First();
        if (id < 0) continue;
        order.push_back(id);
        core.Clear(id);
        more = true;
      }
    }
  }
  // The cores with available CPUs: those with the fewest first, then by id.
  Order Sorted(const std::vector<int>& cores) const {
    absl::InlinedVector<std::pair<int, int>, 64> counted;
    for (const int core : cores) {
      const int count = left_.CountCommon(cpu_.in_core[At(core)]);
      if (count > 0) counted.push_back({count, core});
    }
    std::sort(counted.begin(), counted.end());
    Order sorted;
    for (const auto& [count, core] : counted) sorted.push_back(core);
    return sorted;
  }
  // A cache that spans NUMA nodes is gone through at each of them, since 1.38 at the first.
  Order UncoreOrder() const {
    Order order;
    for (const int node : NumaOrder(cpu_, left_)) {
      AppendSorted(cpu_.in_uncore, left_, &cpu_.in_numa[At(node)], order);
    }
    if (!TakesWholeUncoresFirst(minor_)) return order;
    Order once;
    for (const int uncore : order) {
      if (std::find(once.begin(), once.end(), uncore) == once.end()) once.push_back(uncore);
    }
    return once;
  }
  void TakeWholeUncores() {
    for (const int uncore : UncoreOrder()) {
      MarkFree(left_.CountCommon(cpu_.in_uncore[At(uncore)]) == cpu_.in_uncore[At(uncore)].Count(),
               uncore);
    }
    TakeMarked(cpu_.in_uncore);
  }
  // takePartialUncore: the lowest cores of the cache, if they are exactly what is needed.
  void TakePartOfUncore(int uncore) {
    const int per_core = std::max(cpu_.cpus_per_core, 1);
    int cores_needed = (need_ + per_core - 1) / per_core;
    Bits candidates(cpu_.cpu_slots);
    for (const int core : cpu_.cores_in_uncore[At(uncore)]) {
      if (cores_needed == 0) break;
      const Bits free = left_ & cpu_.in_core[At(core)];
      if (free.None() || (free & cpu_.in_uncore[At(uncore)]).None()) continue;
      candidates |= free;
      --cores_needed;
    }
    if (need_ % 2 != 0 && cpu_.cpus_per_core > 1 && candidates.Count() > need_) {
      int last = -1;
      candidates.ForEach([&](int id) { last = id; });
      candidates.Clear(last);
    }
    if (candidates.Count() == need_) Take(candidates);
  }

  const CpuTopology& cpu_;
  int minor_;
  bool spread_;
  Bits left_;
  Bits taken_;
  int need_;
  Order marked_;
};

}  // namespace

Order SocketOrder(const CpuTopology& cpu, const Bits& available) {
  Order order;
  if (!cpu.numa_first()) {
    AppendSorted(cpu.in_socket, available, nullptr, order);
    return order;
  }
  for (const int node : NumaOrder(cpu, available)) {
    AppendSorted(cpu.in_socket, available, &cpu.in_numa[At(node)], order);
  }
  return order;
}

Order NumaOrder(const CpuTopology& cpu, const Bits& available) {
  Order order;
  if (cpu.numa_first()) {
    AppendSorted(cpu.in_numa, available, nullptr, order);
    return order;
  }
  for (const int socket : SocketOrder(cpu, available)) {
    AppendSorted(cpu.in_numa, available, &cpu.in_socket[At(socket)], order);
  }
  return order;
}

std::optional<Bits> TakePacked(const Machine& machine, const Bits& available, int need,
                               bool by_uncore) {
  Accumulator cpus(machine, available, need);
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  if (cpus.Failed()) return std::nullopt;
  const bool numa_first = machine.cpu.numa_first();
  numa_first ? cpus.TakeWholeNumaNodes() : cpus.TakeWholeSockets();
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  numa_first ? cpus.TakeWholeSockets() : cpus.TakeWholeNumaNodes();
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  if (by_uncore) cpus.TakeUncores();
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  cpus.TakeWholeCores();
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  cpus.TakeSingleCpus();
  if (cpus.Satisfied()) return std::move(cpus).Taken();
  return std::nullopt;
}

TakenCpus OutcomeOf(std::optional<Bits> cpus) {
  if (!cpus) return {};
  return {.outcome = TakenCpus::Outcome::kTaken, .cpus = *std::move(cpus)};
}

TakenCpus TakeCpus(const Machine& machine, const Bits& available, int need, int hinted_nodes) {
  const Settings& settings = machine.settings;
  if (settings.distribute_cpus_across_numa) {
    const int group = settings.full_pcpus_only ? std::max(machine.cpu.cpus_per_core, 1) : 1;
    return TakeDistributed(machine, available, need, group, hinted_nodes);
  }
  return OutcomeOf(TakePacked(machine, available, need, settings.prefer_align_cpus_by_uncorecache));
}

}  // namespace scheduler::admission
