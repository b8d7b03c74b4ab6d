#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/api_error.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/watch.h"

namespace agent {

// How logs name what is followed: "event=resource_slices_watch", and "slice=" one of them.
struct FollowedName {
  const char* prefix;
  const char* noun;
  bool is_expected;  // that the watch ends is a warning
};
void LogSynced(const FollowedName& name, std::size_t count);
void LogNotUnderstood(const FollowedName& name, const kube::Object& object,
                      const absl::Status& status);
// `refused`: it will not do better by itself.
void LogLost(const FollowedName& name, const kube::WatchEvent& event, bool refused);

// Follows the objects that a watch selects: keeps of each an Item, and tells the Whole that they
// come to. While the API server is away, what it said last stands. Where it refuses (no permission,
// or no such kind), nothing is known: that is said once, and asked again when the watch begins
// anew. Safe for concurrent use.
template <class Item, class Whole>
class Followed {
 public:
  using Items = std::map<std::pair<std::string, std::string>, Item>;  // by namespace and name
  // Or why it is not known; nullptr: not answered yet.
  using Answer = std::shared_ptr<const absl::StatusOr<Whole>>;

  struct Rules {
    FollowedName name;
    absl::StatusOr<Item> (*read)(const kube::Object& object);
    Whole (*sum_up)(const Items& items);
  };

  // `changed` is called on a thread of the watch when Get returns something else. The client
  // outlives this.
  Followed(kube::Client& client, kube::WatchOptions options, Rules rules,
           std::function<void()> changed)
      : rules_(rules),
        changed_(std::move(changed)),
        watch_(client, std::move(options), [this](const kube::WatchEvent& event) { Take(event); }) {
  }

  Answer Get() const {
    const std::lock_guard lock(mutex_);
    return answer_;
  }

 private:
  void Take(const kube::WatchEvent& event) {
    using Kind = kube::WatchEvent::Kind;
    switch (event.kind) {
      case Kind::kAdded:
      case Kind::kModified:
        return Put(event.object);
      case Kind::kDeleted:
        return Forget(event.object);
      case Kind::kSynced:
        LogSynced(rules_.name, items_.size());
        complete_ = true;
        return Publish();
      case Kind::kLost:
        return Lost(event);
    }
  }

  void Put(const kube::Object& object) {
    absl::StatusOr<Item> item = rules_.read(object);
    if (!item.ok()) {  // as if it were not known
      LogNotUnderstood(rules_.name, object, item.status());
      return Forget(object);
    }
    const auto [known, is_new] = items_.try_emplace({object.namespace_name, object.name});
    if (!is_new && known->second == *item) return;
    known->second = *std::move(item);
    Publish();
  }

  void Forget(const kube::Object& object) {
    if (items_.erase({object.namespace_name, object.name}) > 0) Publish();
  }

  void Lost(const kube::WatchEvent& event) {
    const bool refused = kube::IsRefusal(event.code);
    LogLost(rules_.name, event, refused);
    if (refused) Set(absl::Status(event.code, event.reason));
  }

  // A part of them would look as if the others were not there.
  void Publish() {
    if (complete_) Set(rules_.sum_up(items_));
  }

  void Set(absl::StatusOr<Whole> whole) {
    {
      const std::lock_guard lock(mutex_);
      if (answer_ != nullptr && *answer_ == whole) return;
      answer_ = std::make_shared<const absl::StatusOr<Whole>>(std::move(whole));
    }
    changed_();
  }

  const Rules rules_;
  const std::function<void()> changed_;
  // Used by the watch's thread alone.
  Items items_;
  bool complete_ = false;  // all of them have been named

  mutable std::mutex mutex_;
  Answer answer_;      // guarded by mutex_
  kube::Watch watch_;  // the last: it calls Take
};

}  // namespace agent
