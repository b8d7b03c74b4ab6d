#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "scheduler/admission/cpu_take.h"
#include "scheduler/admission/release.h"

// distribute-cpus-across-numa: for 1, 2, 3, … NUMA nodes, the first number of nodes that can share
// the request evenly, and among its combinations the one that leaves the machine most balanced.
namespace scheduler::admission {
namespace {

constexpr int kNever = -1;

// More combinations of NUMA nodes, as two dozen nodes have, keep a kubelet from all else for too
// long. The number is ours.
constexpr int kMostCombinations = 1 << 20;

// A list of NUMA nodes that a search remembers as its best. Kubelets up to 1.37 keep it as a Go
// slice whose memory later combinations of the same search may write over: appending to a slice in
// place when its capacity (1, 2, 4, 8, 16, …) allows. So the remembered list can change behind the
// search's back, and the CPUs are taken from the changed list (fixed in 1.38).
class RememberedList {
 public:
  bool empty() const { return size_ == 0; }
  const Order& values() const { return values_; }
  void Forget() { *this = RememberedList(); }

  void Remember(const Order& values, int block) {
    values_ = values;
    size_ = static_cast<int>(values.size());
    block_ = block;
  }
  // The search wrote `value` at `index` of the memory block `block`.
  void Written(int block, int index, int value) {
    if (block == block_ && index < size_) values_[static_cast<std::size_t>(index)] = value;
  }
  void Detach() { block_ = kNever; }

 private:
  Order values_;
  int size_ = 0;
  int block_ = kNever;
};

// Goes through the combinations of `size` out of `nodes`, in order, until `visit(combination,
// block)` returns false. `written(block, index, value)` hears of each write to a block that may be
// shared.
template <class Visit, class Written>
class Combinations {
 public:
  Combinations(const Order& nodes, int size, Visit visit, Written written)
      : nodes_(nodes), size_(size), visit_(visit), written_(written) {}

  void Run() {
    if (size_ >= 1) Extend(0, 0, kNever);
  }

 private:
  // Appends one more node to the first `length`, which lie in `block`.
  bool Extend(int length, int start, int block) {
    if (length == size_) return visit_(combination_, block);
    const int last = static_cast<int>(nodes_.size()) - (size_ - length);
    for (int i = start; i <= last; ++i) {
      const int node = nodes_[static_cast<std::size_t>(i)];
      const bool full =
          length == 0 || (length & (length - 1)) == 0;  // capacity 1, 2, 4, 8 … is used up
      const int target = full ? next_block_++ : block;
      if (!full) written_(target, length, node);
      combination_.resize(static_cast<std::size_t>(length));
      combination_.push_back(node);
      if (!Extend(length + 1, i + 1, target)) return false;
    }
    return true;
  }

  const Order& nodes_;
  int size_;
  Visit visit_;
  Written written_;
  Order combination_;
  int next_block_ = 0;
};

double RoundedToThousandths(double value) { return std::round(value * 1000) / 1000; }

// The kubelet's balance score: how unevenly the CPUs are left over.
double StandardDeviation(const Order& counts) {
  double sum = 0;
  for (const int count : counts) sum += count;
  const auto size = static_cast<double>(counts.size());
  const double mean = RoundedToThousandths(sum / size);
  double squares = 0;
  for (const int count : counts) squares += (count - mean) * (count - mean);
  return RoundedToThousandths(std::sqrt(squares / size));
}

class Distribution {
 public:
  Distribution(const Machine& machine, const Bits& available, int need, int group)
      : machine_(machine),
        minor_(machine.settings.minor_version),
        available_(available),
        need_(need),
        group_(group),
        align_by_socket_(machine.settings.align_by_socket && DistributesWithinSockets(minor_)),
        nodes_(NumaOrder(machine.cpu, available)),
        free_(static_cast<std::size_t>(machine.numa_count()), 0) {
    for (const int node : nodes_) {
      free_[At(node)] = available.CountCommon(machine.cpu.in_numa[At(node)]);
    }
  }

  // Finds the combination for the smallest number of nodes that has one; no fewer nodes than the
  // merged hint has.
  bool Search(int hinted_nodes) {
    const auto groups = [&](int cpus) { return (cpus - 1) / group_ + 1; };
    const int per_node = (groups(machine_.cpu.cpus) - 1) / machine_.cpu.numa_nodes + 1;
    int least = (groups(need_) - 1) / per_node + 1;
    const int most = std::min(groups(need_), static_cast<int>(nodes_.size()));
    if (DistributesOverHintedNodes(minor_) && hinted_nodes <= most) {
      least = std::max(least, hinted_nodes);
    }
    for (int size = least; size <= most; ++size) {
      best_balance_ = std::numeric_limits<double>::max();
      const auto visit = [this](const Order& combo, int block) { return Try(combo, block); };
      const auto written = [this](int b, int i, int value) { best_.Written(b, i, value); };
      Combinations search(nodes_, size, visit, written);
      search.Run();
      if (endless_ || !best_.empty()) return true;
    }
    return false;
  }

  // Takes the CPUs from the combination that was found.
  TakenCpus Take() {
    if (endless_) return {.outcome = TakenCpus::Outcome::kEndless, .cpus = {}};
    int share = need_ / static_cast<int>(best_.values().size()) / group_ * group_;
    for (const int node : best_.values()) {
      if (CapsEvenShares(minor_)) share = std::min(share, Whole(node));
    }
    Bits taken(machine_.cpu.cpu_slots);
    for (const int node : best_.values()) TakeFrom(node, share, taken);
    int rest = need_ - share * static_cast<int>(best_.values().size());
    while (rest > 0) {
      const int before = rest;
      for (const int node : best_rest_.values()) {
        if (rest == 0) break;
        if (Left(node, taken) < group_) continue;
        TakeFrom(node, group_, taken);
        rest -= group_;
      }
      if (rest == before) return {.outcome = TakenCpus::Outcome::kEndless, .cpus = {}};
    }
    if (taken.Count() != need_) return {};
    return {.outcome = TakenCpus::Outcome::kTaken, .cpus = std::move(taken)};
  }

 private:
  // Counts one more combination; true if there were too many.
  bool Tires() {
    endless_ = endless_ || ++combinations_ > kMostCombinations;
    return endless_;
  }
  int Whole(int node) const { return free_[At(node)] / group_ * group_; }
  int Left(int node, const Bits& taken) const {
    return (available_ - taken).CountCommon(machine_.cpu.in_numa[At(node)]);
  }
  void TakeFrom(int node, int count, Bits& taken) const {
    const Bits own = (available_ - taken) & machine_.cpu.in_numa[At(node)];
    if (const std::optional<Bits> cpus = TakePacked(machine_, own, count, false)) taken |= *cpus;
  }

  bool InOneSocket(const Order& combo) const {
    int sockets = 0;
    for (const Bits& socket : machine_.cpu.in_socket) {
      const auto on_it = [&](int node) {
        return socket.CountCommon(machine_.cpu.in_numa[At(node)]) > 0;
      };
      sockets += std::any_of(combo.begin(), combo.end(), on_it) ? 1 : 0;
    }
    return sockets <= 1;
  }

  // How much each node of the combination gives, at the least; kNever if it cannot hold the
  // request.
  int EvenShare(const Order& combo) const {
    int cpus = 0;
    int whole = 0;
    for (const int node : combo) {
      cpus += free_[At(node)];
      whole += Whole(node);
    }
    if (cpus < need_ || whole < need_) return kNever;
    int share = need_ / static_cast<int>(combo.size()) / group_ * group_;
    for (const int node : combo) {
      if (align_by_socket_) share = std::min(share, Whole(node));
      if (free_[At(node)] < share) return kNever;
    }
    return share;
  }

  // One combination. False ends the search: nothing can be better.
  bool Try(const Order& combo, int block) {
    if (Tires()) return false;
    if (best_balance_ == 0 && (!align_by_socket_ || best_in_one_socket_)) return false;
    const int share = EvenShare(combo);
    if (share == kNever) return true;
    Order after;  // by position in nodes_
    Order givers;
    Mask chosen = 0;
    for (const int node : combo) chosen |= Mask{1} << node;
    for (const int node : nodes_) {
      const bool gives = ((chosen >> node) & 1) != 0;
      after.push_back(free_[At(node)] - (gives ? share : 0));
    }
    for (const int node : combo) {
      if (free_[At(node)] - share >= group_) givers.push_back(node);
    }
    RememberedList rest;
    const double balance =
        BestRest(after, givers, need_ - share * static_cast<int>(combo.size()), rest);
    if (endless_) return false;
    const bool in_one_socket = align_by_socket_ && InOneSocket(combo);
    bool better = balance < best_balance_;
    if (align_by_socket_ && in_one_socket != best_in_one_socket_) better = in_one_socket;
    if (!better) return true;
    best_balance_ = balance;
    best_in_one_socket_ = in_one_socket;
    best_rest_ = rest;
    best_.Remember(combo, CopiesCombinations(minor_) ? kNever : block);
    return true;
  }

  // Which of the givers give the rest, one group each in turns, so that the machine is left most
  // balanced; the most givers first.
  double BestRest(const Order& after, const Order& givers, int rest, RememberedList& best) {
    if (rest == 0) return StandardDeviation(after);
    double best_balance = std::numeric_limits<double>::max();
    for (int size = static_cast<int>(givers.size()); size >= 1; --size) {
      const auto visit = [&](const Order& subset, int block) {
        const double balance = BalanceAfter(after, subset, rest);
        if (balance < best_balance) {
          best_balance = balance;
          best.Remember(subset, CopiesCombinations(minor_) ? kNever : block);
        }
        return !endless_;
      };
      const auto written = [&](int b, int i, int value) { best.Written(b, i, value); };
      Combinations search(givers, size, visit, written);
      search.Run();
      best.Detach();
    }
    return best_balance;
  }

  // Kubelets up to 1.37 let nodes share in the search that have the CPUs but not in whole groups,
  // and then deal out groups for ever.
  double BalanceAfter(Order after, const Order& subset, int rest) {
    if (Tires()) return std::numeric_limits<double>::max();
    const auto of = [&](int node) -> int& {
      return after[At(
          static_cast<int>(std::find(nodes_.begin(), nodes_.end(), node) - nodes_.begin()))];
    };
    int sum = 0;
    for (const int node : subset) {
      sum += CountsGroupsOfTheRest(minor_) ? of(node) / group_ * group_ : of(node);
    }
    if (sum < rest) return std::numeric_limits<double>::max();
    while (rest > 0) {
      const int before = rest;
      for (const int node : subset) {
        if (rest == 0) break;
        if (of(node) < group_) continue;
        of(node) -= group_;
        rest -= group_;
      }
      if (rest == before) {
        endless_ = true;
        return std::numeric_limits<double>::max();
      }
    }
    return StandardDeviation(after);
  }

  const Machine& machine_;
  int minor_;
  const Bits& available_;
  int need_;
  int group_;
  bool align_by_socket_;
  bool endless_ = false;
  int combinations_ = 0;
  Order nodes_;
  Order free_;  // by NUMA position
  double best_balance_ = 0;
  bool best_in_one_socket_ = false;
  RememberedList best_;
  RememberedList best_rest_;
};

}  // namespace

TakenCpus TakeDistributed(const Machine& machine, const Bits& available, int need, int group,
                          int hinted_nodes) {
  if (need < 1) return OutcomeOf(Bits(machine.cpu.cpu_slots));
  if (need % group != 0) return OutcomeOf(TakePacked(machine, available, need, false));
  if (need > available.Count()) return {};
  Distribution distribution(machine, available, need, group);
  if (!distribution.Search(hinted_nodes)) {
    return OutcomeOf(TakePacked(machine, available, need, false));
  }
  return distribution.Take();
}

}  // namespace scheduler::admission
