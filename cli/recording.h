#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_set.h"
#include "kube/pod.h"
#include "placement/node_placement.h"
#include "scheduler/admission/machine.h"

// Recorded admissions of a real kubelet: one JSON object a line, a node and what happened on it.
namespace cli {

// What a recording that does not name its kubelet was made with.
inline constexpr char kRecordedVersion[] = "v1.37.2";

struct RecordedContainer {
  std::string name;
  std::optional<base::NumaMask> affinity;  // nullopt: no mask
  bool preferred = false;
  base::CpuSet cpus;                                        // exclusive ones
  std::vector<placement::PlacedMemory> memory;              // sorted by type
  std::map<std::string, std::vector<std::string>> devices;  // ids by resource, sorted
};

struct RecordedVerdict {
  bool admitted = false;
  std::string reason;  // "" | TopologyAffinityError | UnexpectedAdmissionError | …
  std::string message;
  std::vector<RecordedContainer> containers;
  std::string stage;  // of a rejection: "merge" or "allocate"
  std::optional<base::NumaMask> rejected_affinity;
  bool rejected_preferred = false;
  std::optional<base::CpuSet> shared_cpus;
  bool ambiguous_devices = false;
};

struct RecordedEvent {
  enum class Kind { kAdd, kRemove, kDeviceHealth };
  Kind kind = Kind::kAdd;
  kube::Pod pod;                        // of kAdd; for kRemove the uid only
  bool not_started = false;             // admitted, but its containers never start
  RecordedVerdict verdict;              // the managers' code alone
  std::optional<RecordedVerdict> live;  // the running kubelet, later handlers included
  std::string resource;                 // of kDeviceHealth
  std::vector<std::string> unhealthy;
};

struct Recording {
  std::string name;  // "" if it has none
  std::string family;
  placement::NodePlacement node;
  scheduler::admission::DeviceOrder device_order;
  std::optional<kube::Resources> node_allocatable;  // only of running kubelets
  std::vector<RecordedEvent> events;
};

// Reads one line. Members that are not known here are ignored; InvalidArgument if the text is no
// JSON, or names the first member that is missing or has a type or value that cannot be.
absl::StatusOr<Recording> ParseRecording(const std::string& line);

// Calls visit(line number, line) for every line of a file, plain or gzip, without its end. Stops at
// the first error of visit. NotFound or InvalidArgument if the file cannot be read to its end, such
// as a gzip file that was cut off, or that something else follows.
absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(int, const std::string&)>& visit);

}  // namespace cli
