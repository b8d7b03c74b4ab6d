#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kube/metadata.h"

// What those who write to the API server have in common.
namespace agent {

// Of server-side apply: the fields that we set are ours by this name, also after a restart.
inline constexpr const char* kFieldManager = "plumbline-agent";

// Why a write failed, in a word, for the metrics.
const char* ResultOf(const absl::Status& failure);

// The UID of the Node that owns an object by now; "" if none does.
std::string OwningNode(const kube::Metadata& object);

// The Node, which owns what is written about it, by its UID. One thread calls.
class NodeOwner {
 public:
  // metadata.uid of the Node; nullopt before it was seen, and after it was deleted.
  using Uid = std::function<std::optional<std::string>()>;

  explicit NodeOwner(Uid uid) : uid_(std::move(uid)) {}

  // "" as long as it is not known: better no owner yet than to wait. Nothing once the Node was
  // deleted: what belongs to it goes with it, and made anew it would belong to nobody.
  std::optional<std::string> Now() {
    const std::optional<std::string> uid = uid_();
    known_ = known_ || uid;
    if (!uid && known_) return std::nullopt;
    return uid.value_or("");
  }

 private:
  const Uid uid_;
  bool known_ = false;
};

}  // namespace agent
