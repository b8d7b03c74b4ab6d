// What comes from the API server and from people's files, as any bytes: a stream of a watch in
// pieces, a list, an object, a refusal, a kubeconfig, a URL. An error or values; the pieces that a
// stream is cut into make no difference.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kube/api_error.h"
#include "kube/config.h"
#include "kube/exec_plugin.h"
#include "kube/json.h"
#include "kube/object.h"
#include "kube/proxy.h"
#include "kube/watch_events.h"

namespace {

std::vector<std::string> Lines(const std::string& bytes, std::size_t piece) {
  std::vector<std::string> lines;
  kube::LineSplitter splitter(std::size_t{1} << 20);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const absl::Status added = splitter.Add(bytes.substr(at, piece), [&](std::string_view line) {
      lines.emplace_back(line);
      return absl::OkStatus();
    });
    if (!added.ok()) std::abort();
  }
  return lines;
}

void ReadStream(const std::string& bytes) {
  const std::vector<std::string> lines = Lines(bytes, bytes.size() + 1);
  if (Lines(bytes, 7) != lines) std::abort();
  for (const std::string& line : lines) {
    const absl::StatusOr<kube::WatchLine> event = kube::ParseWatchLine(line);
    if (event.ok() && event->type == kube::WatchLine::Type::kError) {
      kube::ParseStatus(event->object.json);
    }
  }
}

void ReadReply(const std::string& body) {
  const kube::ApiError error =
      kube::ReadApiError({.status = 409, .retry_after = body, .body = body});
  kube::IsPassing(error);
  if (kube::ToStatus(error, "try").ok()) std::abort();
  const absl::StatusOr<kube::Object> object = kube::ParseObject(body);
  // Its text is the same object.
  if (object.ok() && *kube::ParseObject(object->json) != *object) std::abort();
  const absl::StatusOr<kube::ListPage> page = kube::ParseListPage(body);
  if (!page.ok()) return;
  for (const kube::Object& item : page->list.items) {
    if (!kube::JsonObject::Parse(item.json).ok()) std::abort();
  }
}

void ReadFiles(const std::string& text) {
  const kube::Environment environment = {{"HTTPS_PROXY", text}, {"NO_PROXY", text}};
  for (const kube::Caller caller : {kube::Caller::kPerson, kube::Caller::kDaemon}) {
    const auto config = kube::ParseKubeconfig(text, "/", "", caller, environment);
    if (!config.ok()) continue;
    if (caller == kube::Caller::kDaemon && config->exec) std::abort();
    if (!kube::ParseUrl(config->server).ok()) std::abort();
  }
  if (const auto url = kube::ParseUrl(text); url.ok()) kube::ProxyFor(*url, environment);
  (void)kube::ParsePluginAnswer(text, "client.authentication.k8s.io/v1");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  ReadStream(text);
  ReadReply(text);
  ReadFiles(text);
  return 0;
}
