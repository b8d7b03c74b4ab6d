#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "agent/publisher.h"

namespace test {

// Keeps what was published. Fails as it is told to.
class FakePublisher : public agent::Publisher {
 public:
  struct Published {
    placement::Observation content;
    bool nrt_changed = false;
    bool placement_changed = false;
    bool had_before = false;
  };

  absl::Status Publish(const agent::Publication& publication) override {
    ++attempts;
    if (answer) {
      if (absl::Status status = answer(); !status.ok()) return status;
    }
    published.push_back({.content = publication.content,
                         .nrt_changed = publication.nrt_changed,
                         .placement_changed = publication.placement_changed,
                         .had_before = publication.before != nullptr});
    return absl::OkStatus();
  }

  int attempts = 0;
  std::vector<Published> published;
  std::function<absl::Status()> answer;  // asked at each attempt; none: all is well
};

}  // namespace test
