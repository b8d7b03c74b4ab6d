#include "kube/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "kube/json.h"

namespace kube {
namespace {

using std::chrono::milliseconds;

constexpr int kUnauthorized = 401;
constexpr int kTooManyRequests = 429;
constexpr int kListsStartedOver = 3;  // a list that is slower than the server forgets

bool IsSuccess(int status) { return status >= 200 && status < 300; }

absl::Status Prefixed(const std::string& tried, const absl::Status& status) {
  return {status.code(), fmt::format("{}: {}", tried, std::string(status.message()))};
}

// Of the transport's errors: whether the same request may be sent again.
bool MayBeRepeated(const absl::Status& status, bool repeatable) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:  // nothing was sent
      return true;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
      return repeatable;
    default:
      return false;
  }
}

constexpr char kJson[] = "application/json";

// The media type in which an object, or a list of them, comes as its metadata alone. A server that
// does not know it sends all.
std::string MetadataOf(std::string_view kind) {
  return fmt::format("{0};as={1};g=meta.k8s.io;v=v1,{0}", kJson, kind);
}

std::string Tried(const char* verb, const ObjectName& object) {
  return fmt::format("{} {}", verb, ToString(object));
}

}  // namespace

Client::Client(Transport& transport, base::Clock& clock, ClientOptions options, Random random)
    : transport_(transport),
      clock_(clock),
      options_(std::move(options)),
      random_(std::move(random)) {}

Client::Failure Client::Judge(const Call& call, const absl::StatusOr<HttpReply>& reply) const {
  if (!reply.ok()) {
    return {.status = Prefixed(call.tried, reply.status()),
            .again = MayBeRepeated(reply.status(), call.repeatable)};
  }
  const ApiError error = ReadApiError(*reply);
  Failure failure{.status = ToStatus(error, call.tried)};
  // 429 is said before anything is done.
  failure.again = IsPassing(error) && (call.repeatable || error.code == kTooManyRequests);
  if (error.retry_after) {
    failure.retry_after = std::min<milliseconds>(*error.retry_after, options_.longest_retry_after);
  }
  return failure;
}

absl::StatusOr<std::string> Client::Ask(const Call& call, const std::stop_token& stop) {
  Backoff backoff(options_.first_pause, options_.longest_pause, random_);
  bool refused = false;
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<HttpReply> reply =
        transport_.Send(call.request, options_.deadline, call.max_reply_bytes, stop);
    if (reply.ok() && IsSuccess(reply->status)) return std::move(reply->body);
    if (reply.ok() && reply->status == kUnauthorized && !std::exchange(refused, true)) continue;
    const Failure failure = Judge(call, reply);
    if (!failure.again || attempt >= options_.attempts) return failure.status;
    if (!clock_.Wait(failure.retry_after.value_or(backoff.Next()), stop)) {
      return absl::CancelledError(call.tried + ": stopped");
    }
  }
}

absl::StatusOr<Object> Client::AskForObject(const Call& call, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const std::string body, Ask(call, stop));
  absl::StatusOr<Object> object = ParseObject(body);
  if (object.ok()) return object;
  return absl::InternalError(fmt::format("{}: what the server sent {}", call.tried,
                                         std::string(object.status().message())));
}

absl::StatusOr<Object> Client::Get(const ObjectName& object, const std::stop_token& stop) {
  return AskForObject({.tried = Tried("get", object),
                       .request = {.method = "GET", .target = PathOf(object)},
                       .max_reply_bytes = options_.max_object_bytes},
                      stop);
}

absl::StatusOr<Object> Client::GetMetadata(const ObjectName& object, const std::stop_token& stop) {
  return AskForObject({.tried = Tried("get", object),
                       .request = {.method = "GET",
                                   .target = PathOf(object),
                                   .accept = MetadataOf("PartialObjectMetadata")},
                       .max_reply_bytes = options_.max_object_bytes},
                      stop);
}

absl::StatusOr<Object> Client::Apply(const ObjectName& object, const std::string& json,
                                     const ApplyOptions& options, const std::stop_token& stop) {
  const std::string target =
      fmt::format("{}?fieldManager={}{}", PathOf(object), UrlEscape(options.field_manager),
                  options.force ? "&force=true" : "");
  return AskForObject(
      {.tried = Tried("apply", object),
       .request = {.method = "PATCH",
                   .target = target,
                   .content_type = "application/apply-patch+yaml",
                   .body = json,
                   .accept = options.metadata_only ? MetadataOf("PartialObjectMetadata") : kJson},
       .max_reply_bytes = options_.max_object_bytes},
      stop);
}

absl::StatusOr<Object> Client::MergePatch(const ObjectName& object, const std::string& json,
                                          const std::string& field_manager,
                                          const std::stop_token& stop) {
  std::string target = PathOf(object);
  if (!field_manager.empty()) target += "?fieldManager=" + UrlEscape(field_manager);
  return AskForObject({.tried = Tried("patch", object),
                       .request = {.method = "PATCH",
                                   .target = target,
                                   .content_type = "application/merge-patch+json",
                                   .body = json},
                       .max_reply_bytes = options_.max_object_bytes},
                      stop);
}

absl::StatusOr<Object> Client::Create(const Resource& resource, const std::string& namespace_name,
                                      const std::string& json, const std::stop_token& stop) {
  const Selection where{.resource = resource, .namespace_name = namespace_name};
  return AskForObject({.tried = "create " + ToString(where),
                       .request = {.method = "POST",
                                   .target = PathOf(where),
                                   .content_type = "application/json",
                                   .body = json},
                       .max_reply_bytes = options_.max_object_bytes,
                       .repeatable = false},
                      stop);
}

absl::Status Client::Delete(const ObjectName& object, const std::string& uid,
                            const std::stop_token& stop) {
  HttpRequest request{.method = "DELETE", .target = PathOf(object)};
  if (!uid.empty()) {
    request.content_type = "application/json";
    request.body =
        fmt::format(R"({{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{{"uid":{}}}}})",
                    JsonQuote(uid));
  }
  return Ask({.tried = Tried("delete", object),
              .request = std::move(request),
              .max_reply_bytes = options_.max_object_bytes},
             stop)
      .status();
}

std::string SelectorQuery(const Selection& selection) {
  std::string query;
  if (!selection.field_selector.empty()) {
    query += fmt::format("fieldSelector={}&", UrlEscape(selection.field_selector));
  }
  if (!selection.label_selector.empty()) {
    query += fmt::format("labelSelector={}&", UrlEscape(selection.label_selector));
  }
  return query;
}

absl::StatusOr<ListPage> Client::ListPageOf(const Selection& selection,
                                            const std::string& continue_token, std::size_t& room,
                                            const std::stop_token& stop) {
  const std::string tried = "list " + ToString(selection);
  std::string target =
      fmt::format("{}?{}limit={}", PathOf(selection), SelectorQuery(selection), options_.page_size);
  if (!continue_token.empty()) target += "&continue=" + UrlEscape(continue_token);
  HttpRequest request{.method = "GET", .target = target};
  if (selection.metadata_only) request.accept = MetadataOf("PartialObjectMetadataList");
  ASSIGN_OR_RETURN(
      const std::string body,
      Ask({.tried = tried, .request = std::move(request), .max_reply_bytes = room}, stop));
  room -= body.size();
  absl::StatusOr<ListPage> page = ParseListPage(body);
  if (page.ok()) return page;
  return absl::InternalError(
      fmt::format("{}: what the server sent {}", tried, std::string(page.status().message())));
}

absl::StatusOr<ListPage> Client::ListPageAt(const Selection& selection,
                                            const std::string& continue_token,
                                            const std::stop_token& stop) {
  std::size_t room = options_.max_list_bytes;
  return ListPageOf(selection, continue_token, room, stop);
}

absl::StatusOr<ObjectList> Client::ListOnce(const Selection& selection,
                                            const std::stop_token& stop) {
  ObjectList list;
  std::string continue_token;
  std::size_t room = options_.max_list_bytes;
  do {
    ASSIGN_OR_RETURN(ListPage page, ListPageOf(selection, continue_token, room, stop));
    for (Object& object : page.list.items) list.items.push_back(std::move(object));
    list.resource_version = std::move(page.list.resource_version);
    continue_token = std::move(page.continue_token);
  } while (!continue_token.empty());
  return list;
}

absl::StatusOr<ObjectList> Client::List(const Selection& selection, const std::stop_token& stop) {
  absl::StatusOr<ObjectList> list = ListOnce(selection, stop);
  for (int again = 0; again < kListsStartedOver && absl::IsOutOfRange(list.status()); ++again) {
    list = ListOnce(selection, stop);
  }
  return list;
}

absl::StatusOr<std::optional<ApiError>> Client::Stream(const Selection& selection,
                                                       const std::string& query,
                                                       milliseconds silence,
                                                       const std::function<void()>& opened,
                                                       const Transport::Receive& receive,
                                                       const std::stop_token& stop) {
  HttpRequest request{
      .target = fmt::format("{}?{}{}", PathOf(selection), SelectorQuery(selection), query)};
  if (selection.metadata_only) request.accept = MetadataOf("PartialObjectMetadata");
  const auto stream = [&] {
    return transport_.Stream(request, options_.deadline, silence, opened, receive, stop);
  };
  absl::StatusOr<HttpReply> reply = stream();
  if (reply.ok() && reply->status == kUnauthorized) reply = stream();
  if (!reply.ok()) return Prefixed("watch " + ToString(selection), reply.status());
  if (reply->status == 200) return std::nullopt;
  return ReadApiError(*reply);
}

}  // namespace kube
