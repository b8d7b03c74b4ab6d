// Exchanges with a real API server, by the first context of $KUBECONFIG; prints what came of each.
//   kube-exchanges           all of them, in a namespace of its own name, which must be there
//   kube-exchanges nodes     only the list of nodes
#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

#include "kube/client.h"
#include "kube/config.h"
#include "kube/http_transport.h"
#include "kube/json.h"
#include "kube/watch.h"

namespace {

using kube::ObjectName;
using kube::Resource;

const Resource kNodes = {"", "v1", "nodes"};
const Resource kConfigMaps = {"", "v1", "configmaps"};
const std::string kNamespace = "kube-exchanges";
const ObjectName kMap = {kConfigMaps, kNamespace, "map"};

template <class... T>
void Say(const char* what, fmt::format_string<T...> text, T&&... values) {
  fmt::print("{}: {}\n", what, fmt::format(text, std::forward<T>(values)...));
  std::fflush(stdout);
}

void SayStatus(const char* what, const absl::Status& status) { Say(what, "{}", status.ToString()); }

std::string Map(const std::string& value) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"map"}},)"
                     R"("data":{{"key":{}}}}})",
                     kube::JsonQuote(value));
}

// What a watch said, for who waits for it.
class Heard {
 public:
  void Add(const kube::WatchEvent& event) {
    using Kind = kube::WatchEvent::Kind;
    const std::lock_guard lock(mutex_);
    if (event.kind == Kind::kAdded) text_ += fmt::format(" +{}", event.object.name);
    if (event.kind == Kind::kModified) text_ += fmt::format(" ~{}", event.object.name);
    if (event.kind == Kind::kDeleted) text_ += fmt::format(" -{}", event.object.name);
    if (event.kind == Kind::kSynced) text_ += " synced";
    if (event.kind == Kind::kLost) text_ += fmt::format(" lost ({})", event.reason);
    changed_.notify_all();
  }
  std::string Until(const std::string& end) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return text_.ends_with(end); });
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

bool ListNodes(kube::Client& client) {
  const auto nodes = client.List({.resource = kNodes});
  if (nodes.ok()) {
    Say("list nodes", "{} at {}", nodes->items.size(), nodes->resource_version);
  } else {
    SayStatus("list nodes", nodes.status());
  }
  return nodes.ok();
}

void ListInPages(kube::Transport& transport, base::Clock& clock) {
  kube::ClientOptions options;
  options.page_size = 2;
  kube::Client client(transport, clock, options);
  const auto roles = client.List({.resource = {"rbac.authorization.k8s.io", "v1", "clusterroles"}});
  if (roles.ok()) {
    Say("list by two", "more than ten {}", roles->items.size() > 10);
  } else {
    SayStatus("list by two", roles.status());
  }
}

void ApplyMaps(kube::Client& client) {
  const auto apply = [&](const char* what, const std::string& value, const char* manager,
                         bool force) {
    const auto map = client.Apply(kMap, Map(value), {.field_manager = manager, .force = force});
    if (!map.ok()) SayStatus(what, map.status());
    return map.ok() ? map->resource_version : std::string();
  };
  const std::string first = apply("apply", "1", "one", false);
  const std::string same = apply("apply the same", "1", "one", false);
  const std::string changed = apply("apply a change", "2", "one", false);
  Say("apply", "made {}, the same again {}, a change {}", !first.empty(), same == first,
      !changed.empty() && changed != first);
  apply("apply another manager's field", "3", "two", false);
  Say("apply by force", "{}", !apply("apply by force", "3", "two", true).empty());
  const auto merged = client.MergePatch(kMap, R"({"data":{"more":"x"}})", "one");
  Say("merge", "{}", merged.ok() && merged->json.find(R"("more":"x")") != std::string::npos);
}

void Refusals(kube::Client& client) {
  SayStatus("get what is not there", client.Get({kConfigMaps, kNamespace, "none"}).status());
  SayStatus("get a kind that is not served",
            client.Get({{"nowhere.example", "v1", "things"}, "", "a"}).status());
  SayStatus("create an invalid pod",
            client
                .Create({"", "v1", "pods"}, kNamespace,
                        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}})")
                .status());
  SayStatus("apply a field that there is not",
            client
                .Apply(kMap, R"({"apiVersion":"v1","kind":"ConfigMap","nonsense":1})",
                       {.field_manager = "one"})
                .status());
  SayStatus("create twice", client.Create(kConfigMaps, kNamespace, Map("9")).status());
}

void All(kube::Client& client, kube::Transport& transport, base::Clock& clock) {
  ListInPages(transport, clock);
  Heard heard;
  kube::WatchOptions options;
  options.selection = {
      .resource = kConfigMaps, .namespace_name = kNamespace, .field_selector = "metadata.name=map"};
  const kube::Watch watch(client, options,
                          [&heard](const kube::WatchEvent& event) { heard.Add(event); });
  heard.Until("synced");
  ApplyMaps(client);
  Refusals(client);
  SayStatus("delete", client.Delete(kMap));
  Say("watch", "{}", heard.Until("-map"));
}

}  // namespace

int main(int argc, char** /*argv*/) {
  const char* path = std::getenv("KUBECONFIG");
  base::SystemClock clock;
  const auto config =
      kube::LoadKubeconfig({path == nullptr ? "" : path}, "", kube::Caller::kDaemon, {});
  if (!config.ok()) {
    SayStatus("kubeconfig", config.status());
    return 1;
  }
  const auto transport = kube::MakeTransport(*config, clock);
  if (!transport.ok()) {
    SayStatus("transport", transport.status());
    return 1;
  }
  kube::Client client(**transport, clock);
  const bool listed = ListNodes(client);
  if (argc == 1 && listed) All(client, **transport, clock);
  return listed ? 0 : 1;
}
