#pragma once

#include <map>
#include <set>

// Which CPUs the kubelet's static CPU manager takes, the long way: sets of ids, everything counted
// and sorted anew at each step (kubelet 1.37, cpu_assignment.go). Shares no code with the
// prediction.
namespace reference {

using Ids = std::set<int>;

struct NaiveCpu {
  int numa = 0;
  int socket = 0;
  int core = 0;  // its lowest CPU
  int uncore = 0;
};

struct NaiveCpus {
  std::map<int, NaiveCpu> cpus;  // by id
  bool full_pcpus_only = false;
  bool distribute_across_numa = false;
  bool distribute_across_cores = false;
  bool align_by_socket = false;
  bool by_uncore_cache = false;

  int PerCore() const;  // the kubelet's average, an integer division
};

struct NaiveTaken {
  bool ok = false;
  bool hangs = false;  // the kubelet would not come back
  Ids cpus;
};

NaiveTaken TakeCpus(const NaiveCpus& machine, const Ids& available, int need);

// The CPUs whose `part` (&NaiveCpu::numa, …) is the id.
Ids CpusIn(const std::map<int, NaiveCpu>& cpus, int NaiveCpu::*part, int id);
// The parts that some CPU lies in.
Ids PartsOf(const std::map<int, NaiveCpu>& cpus, int NaiveCpu::*part);

Ids Common(const Ids& a, const Ids& b);
Ids Without(const Ids& a, const Ids& b);
Ids Together(const Ids& a, const Ids& b);

}  // namespace reference
