#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/recording.h"

namespace cli {

// How often the prediction agreed with what a real kubelet did.
struct Agreement {
  int events = 0;                        // admissions compared; the counts below are of these
  int verdicts = 0;                      // admitted or not
  int reasons = 0;                       // the kubelet's reason
  int affinities = 0;                    // merged hints of all containers, or of the rejection
  int cpus = 0;                          // exclusive CPUs of all containers, and the shared pool
  int memory = 0;                        // memory blocks
  int devices = 0;                       // how many devices of each set of NUMA nodes
  int left_out = 0;                      // admissions after a verdict that differed: not compared
  int untold = 0;                        // live only: without the running kubelet's word
  std::vector<std::string> differences;  // one text for each event that differs, in order

  // What a scheduler needs to be right about.
  bool Admissions() const {
    return verdicts == events && reasons == events && affinities == events && left_out == 0;
  }
};

struct ReplayOptions {
  bool live = false;  // compare with the running kubelet, which also checks the node's sums
  // Between any two events the state is published as the NodePlacement's JSON and read back: the
  // object alone carries it. What it lacks comes from the recording: the plugins' order of devices,
  // and when containers start.
  bool through_json = false;
};

// Replays a recording event by event, each on the state that our own verdicts left, and adds to the
// agreement. After a verdict that differs the recording is left: what follows would compare two
// different histories. InvalidArgument if the recording describes no machine.
absl::Status Replay(const Recording& recording, const ReplayOptions& options, Agreement& agreement);

}  // namespace cli
