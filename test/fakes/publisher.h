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
    agent::Objects changed;
    bool had_before = false;
  };

  absl::StatusOr<std::optional<placement::NodePlacement>> Former() override {
    ++attempts_to_ask;
    if (!former_answer.ok()) return former_answer;
    return former;
  }
  absl::Status Publish(const agent::Publication& publication) override {
    ++attempts;
    if (answer) {
      if (absl::Status status = answer(); !status.ok()) return status;
    }
    published.push_back({.content = publication.content,
                         .changed = publication.changed,
                         .had_before = publication.before != nullptr});
    stale = {};
    return absl::OkStatus();
  }
  std::vector<placement::Condition> Conditions() const override { return conditions; }
  agent::Objects Stale() const override { return stale; }

  std::vector<placement::Condition> conditions;
  agent::Objects stale;  // until the next success
  std::optional<placement::NodePlacement> former;
  absl::Status former_answer;  // not OK: what the question about it meets
  int attempts_to_ask = 0;
  int attempts = 0;
  std::vector<Published> published;
  std::function<absl::Status()> answer;  // asked at each attempt; none: all is well
};

}  // namespace test
