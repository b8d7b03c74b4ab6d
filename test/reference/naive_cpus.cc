#include "test/reference/naive_cpus.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

namespace reference {
namespace {

using Table = std::map<int, NaiveCpu>;
using List = std::vector<int>;

Table Keep(const Table& cpus, const Ids& ids) {
  Table kept;
  for (const auto& [id, cpu] : cpus) {
    if (ids.contains(id)) kept[id] = cpu;
  }
  return kept;
}

// The parts of one kind that lie within a part of another kind.
Ids PartsWithin(const Table& cpus, int NaiveCpu::*kind, int NaiveCpu::*within, int id) {
  return PartsOf(Keep(cpus, CpusIn(cpus, within, id)), kind);
}

int Size(const Ids& ids) { return static_cast<int>(ids.size()); }

class Taker {
 public:
  Taker(const NaiveCpus& machine, const Ids& available, int need)
      : machine_(machine), left_(Keep(machine.cpus, available)), need_(need) {
    numa_first_ = PartsOf(machine.cpus, &NaiveCpu::socket).size() >=
                  PartsOf(machine.cpus, &NaiveCpu::numa).size();
  }

  bool done() const { return need_ < 1; }
  int need() const { return need_; }
  const Ids& taken() const { return taken_; }
  const Table& left() const { return left_; }

  void Take(const Ids& cpus) {
    for (const int id : cpus) {
      taken_.insert(id);
      left_.erase(id);
    }
    need_ -= Size(cpus);
  }

  List Numas() const {
    if (numa_first_) return Sorted(PartsOf(left_, &NaiveCpu::numa), &NaiveCpu::numa);
    return Nested(Sockets(), &NaiveCpu::socket, &NaiveCpu::numa);
  }
  List Sockets() const {
    if (!numa_first_) return Sorted(PartsOf(left_, &NaiveCpu::socket), &NaiveCpu::socket);
    return Nested(Numas(), &NaiveCpu::numa, &NaiveCpu::socket);
  }
  List Cores() const {
    return numa_first_ ? Nested(Sockets(), &NaiveCpu::socket, &NaiveCpu::core)
                       : Nested(Numas(), &NaiveCpu::numa, &NaiveCpu::core);
  }
  List Uncores() const { return Nested(Numas(), &NaiveCpu::numa, &NaiveCpu::uncore); }

  void TakeWholeNumasAndSockets() {
    numa_first_ ? TakeWhole(&NaiveCpu::numa, Numas()) : TakeWhole(&NaiveCpu::socket, Sockets());
    if (done()) return;
    numa_first_ ? TakeWhole(&NaiveCpu::socket, Sockets()) : TakeWhole(&NaiveCpu::numa, Numas());
  }
  void TakeWholeCores() { TakeWhole(&NaiveCpu::core, Cores()); }
  void TakeUncoreCaches() {
    const int average = Size(Everything()) / Size(PartsOf(machine_.cpus, &NaiveCpu::uncore));
    for (const int uncore : Uncores()) {
      if (need_ >= average) TakeWhole(&NaiveCpu::uncore, Uncores());
      if (done()) return;
      TakePartOfUncore(uncore);
      if (done()) return;
    }
  }
  void TakeSingleCpus() {
    List order;
    if (machine_.distribute_across_cores) {
      for (const int socket : Sockets()) {
        for (const int id : CpusIn(left_, &NaiveCpu::socket, socket)) order.push_back(id);
      }
    } else {
      for (const int core : Cores()) {
        for (const int id : CpusIn(left_, &NaiveCpu::core, core)) order.push_back(id);
      }
    }
    for (const int id : order) {
      Take({id});
      if (done()) return;
    }
  }

 private:
  Ids Everything() const {
    Ids all;
    for (const auto& [id, cpu] : machine_.cpus) all.insert(id);
    return all;
  }
  // Fewest CPUs left first, then by id.
  List Sorted(const Ids& parts, int NaiveCpu::*kind) const {
    List list(parts.begin(), parts.end());
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      return CpusIn(left_, kind, a).size() < CpusIn(left_, kind, b).size();
    });
    return list;
  }
  List Nested(const List& outer, int NaiveCpu::*outer_kind, int NaiveCpu::*kind) const {
    List list;
    for (const int id : outer) {
      const List own = Sorted(PartsWithin(left_, kind, outer_kind, id), kind);
      list.insert(list.end(), own.begin(), own.end());
    }
    return list;
  }
  // How many CPUs make a part whole: its own, but for sockets and cores the kubelet goes by the
  // average of the machine.
  int SizeOfWhole(int NaiveCpu::*kind, int id) const {
    if (kind == &NaiveCpu::socket || kind == &NaiveCpu::core) {
      return Size(Everything()) / Size(PartsOf(machine_.cpus, kind));
    }
    return Size(CpusIn(machine_.cpus, kind, id));
  }
  void TakeWhole(int NaiveCpu::*kind, const List& parts) {
    List whole;
    for (const int id : parts) {
      if (Size(CpusIn(left_, kind, id)) == SizeOfWhole(kind, id)) whole.push_back(id);
    }
    for (const int id : whole) {
      const Ids cpus = CpusIn(machine_.cpus, kind, id);
      if (need_ >= Size(cpus)) Take(cpus);
    }
  }
  void TakePartOfUncore(int uncore) {
    const int per_core = machine_.PerCore();
    const int cores_needed = (need_ + per_core - 1) / per_core;
    Ids cpus;
    int cores = 0;
    for (const int core : PartsWithin(left_, &NaiveCpu::core, &NaiveCpu::uncore, uncore)) {
      if (cores++ == cores_needed) break;
      cpus = Together(cpus, CpusIn(left_, &NaiveCpu::core, core));
    }
    if (need_ % 2 != 0 && per_core > 1 && Size(cpus) > need_) cpus.erase(std::prev(cpus.end()));
    if (Size(cpus) == need_) Take(cpus);
  }

  const NaiveCpus& machine_;
  Table left_;
  int need_;
  bool numa_first_ = false;
  Ids taken_;
};

NaiveTaken TakePacked(const NaiveCpus& machine, const Ids& available, int need, bool by_uncore) {
  Taker taker(machine, available, need);
  if (!taker.done() && need > Size(available)) return {};
  if (!taker.done()) taker.TakeWholeNumasAndSockets();
  if (!taker.done() && by_uncore) taker.TakeUncoreCaches();
  if (!taker.done() && !machine.distribute_across_cores) taker.TakeWholeCores();
  if (!taker.done()) taker.TakeSingleCpus();
  return {.ok = taker.done(), .hangs = false, .cpus = taker.taken()};
}

// A Go slice: a length, and memory that another slice may write to.
struct GoSlice {
  std::shared_ptr<List> memory;  // of the slice's capacity
  int length = 0;
  bool nil = true;

  GoSlice Append(int value) const {
    GoSlice longer{memory, length + 1, false};
    const int capacity = memory == nullptr ? 0 : static_cast<int>(memory->size());
    if (length == capacity) {  // no room: moved to memory of twice the size
      longer.memory = std::make_shared<List>(static_cast<std::size_t>(std::max(1, 2 * capacity)));
      for (int i = 0; i < length; ++i) (*longer.memory)[static_cast<std::size_t>(i)] = At(i);
    }
    (*longer.memory)[static_cast<std::size_t>(length)] = value;
    return longer;
  }
  int At(int index) const { return (*memory)[static_cast<std::size_t>(index)]; }
  List Values() const {
    List values;
    for (int i = 0; i < length; ++i) values.push_back(At(i));
    return values;
  }
};

// Calls visit for each combination of `size` of the list, until it returns false.
bool Combine(const List& list, int size, int start, const GoSlice& chosen,
             const std::function<bool(const GoSlice&)>& visit) {
  if (size == 0) return visit(chosen);
  for (int i = start; i <= static_cast<int>(list.size()) - size; ++i) {
    if (!Combine(list, size - 1, i + 1, chosen.Append(list[static_cast<std::size_t>(i)]), visit)) {
      return false;
    }
  }
  return true;
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

double Unevenness(const std::map<int, int>& counts) {
  double sum = 0;
  for (const auto& [id, count] : counts) sum += count;
  const double mean = Rounded(sum / static_cast<double>(counts.size()));
  double squares = 0;
  for (const auto& [id, count] : counts) squares += (count - mean) * (count - mean);
  return Rounded(std::sqrt(squares / static_cast<double>(counts.size())));
}

class Distributor {
 public:
  Distributor(const NaiveCpus& machine, const Ids& available, int need, int group)
      : machine_(machine), taker_(machine, available, need), need_(need), group_(group) {}

  NaiveTaken Run(const Ids& available) {
    const auto groups = [&](int cpus) { return (cpus - 1) / group_ + 1; };
    const List numas = taker_.Numas();
    const int all_numas = Size(PartsOf(machine_.cpus, &NaiveCpu::numa));
    const int per_numa = (groups(static_cast<int>(machine_.cpus.size())) - 1) / all_numas + 1;
    const int least = (groups(need_) - 1) / per_numa + 1;
    const int most = std::min(groups(need_), static_cast<int>(numas.size()));
    for (int size = least; size <= most; ++size) {
      best_ = Best();
      Combine(numas, size, 0, {}, [&](const GoSlice& combo) { return Try(numas, combo); });
      if (hangs_) return {.ok = false, .hangs = true, .cpus = {}};
      if (!best_.combo.nil) return TakeBest();
    }
    return TakePacked(machine_, available, need_, false);
  }

 private:
  struct Best {
    double balance = std::numeric_limits<double>::max();
    GoSlice combo;
    GoSlice rest;
    bool in_one_socket = false;
  };

  int Left(int numa) const { return Size(CpusIn(taker_.left(), &NaiveCpu::numa, numa)); }
  int WholeGroups(int numa) const { return Left(numa) / group_ * group_; }

  bool InOneSocket(const List& numas) const {
    Ids sockets;
    for (const int numa : numas) {
      sockets =
          Together(sockets, PartsWithin(machine_.cpus, &NaiveCpu::socket, &NaiveCpu::numa, numa));
    }
    return sockets.size() <= 1;
  }

  bool Try(const List& numas, const GoSlice& combo_slice) {
    const bool settled = !machine_.align_by_socket || best_.in_one_socket;
    if (best_.balance == 0 && settled) return false;
    const List combo = combo_slice.Values();
    int cpus = 0;
    int whole = 0;
    for (const int numa : combo) {
      cpus += Left(numa);
      whole += WholeGroups(numa);
    }
    if (cpus < need_ || whole < need_) return true;
    int share = need_ / static_cast<int>(combo.size()) / group_ * group_;
    for (const int numa : combo) {
      if (machine_.align_by_socket) share = std::min(share, WholeGroups(numa));
    }
    for (const int numa : combo) {
      if (Left(numa) < share) return true;
    }
    std::map<int, int> after;
    for (const int numa : numas) after[numa] = Left(numa);
    List givers;
    for (const int numa : combo) {
      after[numa] -= share;
      if (after[numa] >= group_) givers.push_back(numa);
    }
    Best here;
    const int rest = need_ - share * static_cast<int>(combo.size());
    if (rest == 0) here.balance = Unevenness(after);
    if (rest > 0) FindRest(after, givers, rest, here);
    here.combo = combo_slice;
    here.in_one_socket = machine_.align_by_socket && InOneSocket(combo);
    const bool better = machine_.align_by_socket && here.in_one_socket != best_.in_one_socket
                            ? here.in_one_socket
                            : here.balance < best_.balance;
    if (better) best_ = here;
    return !hangs_;
  }

  void FindRest(const std::map<int, int>& after, const List& givers, int rest, Best& here) {
    for (int size = static_cast<int>(givers.size()); size >= 1; --size) {
      Combine(givers, size, 0, {}, [&](const GoSlice& subset) {
        const double balance = BalanceAfter(after, subset.Values(), rest);
        if (balance < here.balance) {
          here.balance = balance;
          here.rest = subset;
        }
        return true;
      });
    }
  }

  double BalanceAfter(std::map<int, int> after, const List& subset, int rest) {
    int sum = 0;
    for (const int numa : subset) sum += after[numa];
    if (sum < rest) return std::numeric_limits<double>::max();
    while (rest > 0) {
      const int before = rest;
      for (const int numa : subset) {
        if (rest == 0 || after[numa] < group_) continue;
        after[numa] -= group_;
        rest -= group_;
      }
      if (rest == before) {
        hangs_ = true;
        return std::numeric_limits<double>::max();
      }
    }
    return Unevenness(after);
  }

  NaiveTaken TakeBest() {
    const List combo = best_.combo.Values();
    int share = need_ / static_cast<int>(combo.size()) / group_ * group_;
    for (const int numa : combo) share = std::min(share, WholeGroups(numa));
    for (const int numa : combo) TakeFrom(numa, share);
    int rest = need_ - share * static_cast<int>(combo.size());
    while (rest > 0) {
      const int before = rest;
      for (const int numa : best_.rest.Values()) {
        if (rest == 0 || Left(numa) < group_) continue;
        TakeFrom(numa, group_);
        rest -= group_;
      }
      if (rest == before) return {.ok = false, .hangs = true, .cpus = {}};
    }
    return {.ok = taker_.need() == 0, .hangs = false, .cpus = taker_.taken()};
  }

  void TakeFrom(int numa, int count) {
    const NaiveTaken taken =
        TakePacked(machine_, CpusIn(taker_.left(), &NaiveCpu::numa, numa), count, false);
    if (taken.ok) taker_.Take(taken.cpus);
  }

  const NaiveCpus& machine_;
  Taker taker_;
  int need_;
  int group_;
  Best best_;
  bool hangs_ = false;
};

}  // namespace

int NaiveCpus::PerCore() const {
  const int cores = Size(PartsOf(cpus, &NaiveCpu::core));
  return cores == 0 ? 1 : static_cast<int>(cpus.size()) / cores;
}

Ids CpusIn(const Table& cpus, int NaiveCpu::*part, int id) {
  Ids ids;
  for (const auto& [cpu, facts] : cpus) {
    if (facts.*part == id) ids.insert(cpu);
  }
  return ids;
}

Ids PartsOf(const Table& cpus, int NaiveCpu::*part) {
  Ids ids;
  for (const auto& [cpu, facts] : cpus) ids.insert(facts.*part);
  return ids;
}

Ids Common(const Ids& a, const Ids& b) {
  Ids ids;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(ids, ids.end()));
  return ids;
}

Ids Without(const Ids& a, const Ids& b) {
  Ids ids;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(ids, ids.end()));
  return ids;
}

Ids Together(const Ids& a, const Ids& b) {
  Ids ids = a;
  ids.insert(b.begin(), b.end());
  return ids;
}

NaiveTaken TakeCpus(const NaiveCpus& machine, const Ids& available, int need) {
  const int group = machine.full_pcpus_only ? machine.PerCore() : 1;
  if (!machine.distribute_across_numa || need % group != 0) {
    return TakePacked(machine, available, need,
                      machine.by_uncore_cache && !machine.distribute_across_numa);
  }
  if (need < 1) return {.ok = true, .hangs = false, .cpus = {}};
  if (need > Size(available)) return {};
  return Distributor(machine, available, need, group).Run(available);
}

}  // namespace reference
