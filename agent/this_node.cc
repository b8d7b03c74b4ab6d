#include "agent/this_node.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text_layout.h"
#include "kube/json.h"

namespace agent {
namespace {

using kube::JsonObject;

absl::StatusOr<std::int64_t> ReadAmount(const JsonObject& amounts, const std::string& resource) {
  ASSIGN_OR_RETURN(const std::string text, amounts.Text(resource));
  absl::StatusOr<std::int64_t> amount = base::ParseQuantity(text, base::Rounding::kDown);
  if (amount.ok()) return amount;
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", amounts.Path(resource), std::string(amount.status().message())));
}

absl::Status ReadCapacity(const JsonObject& status, NodeObject& node) {
  ASSIGN_OR_RETURN(const JsonObject amounts, status.Object("capacity"));
  for (const std::string& resource : amounts.Names()) {
    const absl::StatusOr<std::int64_t> amount = ReadAmount(amounts, resource);
    node.capacity[resource] = amount.ok() ? std::optional(*amount) : std::nullopt;
    if (!amount.ok()) node.not_understood.emplace_back(amount.status().message());
  }
  return absl::OkStatus();
}

// The shortest way first; a name may lead to another machine, so it comes after addresses.
absl::StatusOr<std::vector<std::string>> ReadAddresses(const JsonObject& status) {
  constexpr std::array<std::string_view, 5> kTypes = {"InternalIP", "InternalDNS", "Hostname",
                                                      "ExternalIP", "ExternalDNS"};
  std::array<std::vector<std::string>, kTypes.size()> by_type;
  ASSIGN_OR_RETURN(const std::vector<JsonObject> list, status.Objects("addresses"));
  for (const JsonObject& entry : list) {
    ASSIGN_OR_RETURN(const std::string type, entry.Text("type"));
    ASSIGN_OR_RETURN(std::string address, entry.Text("address"));
    const auto known = std::ranges::find(kTypes, type);
    if (known == kTypes.end() || address.empty()) continue;
    by_type[static_cast<std::size_t>(known - kTypes.begin())].push_back(std::move(address));
  }
  std::vector<std::string> addresses;
  for (std::vector<std::string>& of_type : by_type) {
    for (std::string& address : of_type) {
      if (std::ranges::find(addresses, address) == addresses.end()) {
        addresses.push_back(std::move(address));
      }
    }
  }
  return addresses;
}

// As a port; 0 for none.
absl::StatusOr<int> ReadKubeletPort(const JsonObject& status) {
  ASSIGN_OR_RETURN(const JsonObject endpoints, status.Object("daemonEndpoints"));
  ASSIGN_OR_RETURN(const JsonObject kubelet, endpoints.Object("kubeletEndpoint"));
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> port, kubelet.Number("Port"));
  if (port.value_or(0) < 0 || port.value_or(0) > 65'535) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is no port", kubelet.Path("Port"), *port));
  }
  return static_cast<int>(port.value_or(0));
}

kube::WatchOptions OptionsFor(const std::string& name) {
  kube::WatchOptions options;
  options.selection = {.resource = {.group = "", .version = "v1", .plural = "nodes"},
                       .field_selector = "metadata.name=" + name};
  return options;
}

}  // namespace

absl::StatusOr<NodeObject> ReadNode(const kube::Object& object) {
  NodeObject node;
  node.exists = true;
  node.uid = object.uid;
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Parse(object.json));
  ASSIGN_OR_RETURN(const JsonObject status, root.Object("status"));
  RETURN_IF_ERROR(ReadCapacity(status, node));
  ASSIGN_OR_RETURN(node.addresses, ReadAddresses(status));
  ASSIGN_OR_RETURN(node.kubelet_port, ReadKubeletPort(status));
  ASSIGN_OR_RETURN(const JsonObject info, status.Object("nodeInfo"));
  ASSIGN_OR_RETURN(node.kubelet_version, info.Text("kubeletVersion"));
  return node;
}

ThisNode::ThisNode(kube::Client& client, const std::string& name, std::function<void()> changed)
    : changed_(std::move(changed)),
      watch_(client, OptionsFor(name), [this](const kube::WatchEvent& event) { Take(event); }) {}

void ThisNode::Take(const kube::WatchEvent& event) {
  using Kind = kube::WatchEvent::Kind;
  switch (event.kind) {
    case Kind::kAdded:
    case Kind::kModified:
      if (absl::StatusOr<NodeObject> node = ReadNode(event.object); node.ok()) {
        Set(*std::move(node));
      } else {
        spdlog::warn("event=node_not_understood error={}",
                     base::OneLine(std::string(node.status().message())));
      }
      break;
    case Kind::kDeleted:
      Set({});
      break;
    case Kind::kSynced:
      if (Get() == nullptr) Set({});
      spdlog::info("event=node_watch state=synced");
      SetRefusal(absl::OkStatus());
      break;
    case Kind::kLost:
      Lost(event);
      break;
  }
}

void ThisNode::Lost(const kube::WatchEvent& event) {
  const bool refused = event.code == absl::StatusCode::kPermissionDenied;
  spdlog::log(refused ? spdlog::level::err : spdlog::level::warn,
              "event=node_watch state={} error={}", refused ? "refused" : "lost",
              base::OneLine(event.reason));
  if (refused) SetRefusal(absl::PermissionDeniedError(event.reason));
}

void ThisNode::SetRefusal(absl::Status refusal) {
  {
    const std::lock_guard lock(mutex_);
    if (refusal_ == refusal) return;
    refusal_ = std::move(refusal);
  }
  changed_();
}

absl::Status ThisNode::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void ThisNode::Set(NodeObject node) {
  {
    const std::lock_guard lock(mutex_);
    if (node_ != nullptr && *node_ == node) return;
    const std::vector<std::string> before =
        node_ == nullptr ? std::vector<std::string>() : node_->not_understood;
    if (!node.not_understood.empty() && node.not_understood != before) {
      spdlog::warn("event=node_not_understood error={}",
                   base::OneLine(fmt::format("{}", fmt::join(node.not_understood, "; "))));
    }
    node_ = std::make_shared<const NodeObject>(std::move(node));
  }
  known_.notify_all();
  changed_();
}

std::shared_ptr<const NodeObject> ThisNode::Get() const {
  const std::lock_guard lock(mutex_);
  return node_;
}

std::shared_ptr<const NodeObject> ThisNode::Await(const std::stop_token& stop) const {
  std::unique_lock lock(mutex_);
  known_.wait(lock, stop, [this] { return node_ != nullptr; });
  return node_;
}

std::optional<std::string> ThisNode::uid() const {
  const std::shared_ptr<const NodeObject> node = Get();
  if (node == nullptr || !node->exists) return std::nullopt;
  return node->uid;
}

std::optional<Capacity> ThisNode::capacity() const {
  const std::shared_ptr<const NodeObject> node = Get();
  if (node == nullptr || !node->exists) return std::nullopt;
  return node->capacity;
}

std::string ThisNode::kubelet_version() const {
  const std::shared_ptr<const NodeObject> node = Get();
  return node == nullptr ? "" : node->kubelet_version;
}

}  // namespace agent
