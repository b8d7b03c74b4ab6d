#include "kube/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "kube/api_error.h"
#include "kube/backoff.h"
#include "kube/watch_events.h"

namespace kube {
namespace {

using std::chrono::milliseconds;

// A stream that lasts less is not taken up again at once, so that a server that ends each is not
// asked without end.
constexpr std::chrono::seconds kBrief{5};

bool IsOneOf(int code, std::initializer_list<int> codes) {
  return std::ranges::find(codes, code) != codes.end();
}

class Watcher {
 public:
  Watcher(Client& client, WatchOptions options, Watch::Handle handle)
      : client_(client),
        options_(std::move(options)),
        handle_(std::move(handle)),
        selection_(options_.selection),
        backoff_(options_.first_pause, options_.longest_pause, client.random()) {}

  void Run(const std::stop_token& stop);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  // One step; an error is a loss.
  absl::Status Begin(const std::stop_token& stop);
  absl::Status BeginByList(const std::stop_token& stop);
  absl::Status BeginByStream(const std::stop_token& stop);
  bool RefusesStreamingLists(const absl::StatusOr<std::optional<ApiError>>& end) const;
  absl::Status Follow(const std::stop_token& stop);
  // The end of a stream, whoever ended it.
  absl::StatusOr<std::optional<ApiError>> Stream(const std::string& query,
                                                 const std::function<void()>& opened,
                                                 const std::stop_token& stop);
  absl::Status Ended(base::Instant began) const;
  absl::Status Take(std::string_view text);
  absl::Status Refused(const ApiError& error);

  bool TryOlderVersion();
  milliseconds PauseAfter(const absl::Status& step);
  void Put(Object object);
  void Remove(const Object& object);
  void FinishListing();
  void TakenUp();
  void Synced();
  void Lost(const absl::Status& status);

  std::string Tried() const { return "watch " + ToString(selection_); }
  std::string Renewal() const;

  Client& client_;
  const WatchOptions options_;
  const Watch::Handle handle_;
  Selection selection_;          // in the version that is tried
  std::size_t older_tried_ = 0;  // how many of options_.older_versions
  Backoff backoff_;
  std::optional<milliseconds> retry_after_;

  std::map<Key, Object> known_;        // what the handler knows, without the text
  std::string resource_version_;       // to go on from; "" if all must be listed
  bool streams_lists_ = true;          // until the server says that it does not
  bool listing_ = false;               // the first part of a streaming list
  std::set<Key> listed_;               // by it
  std::optional<ApiError> told_;       // the error event of this stream
  std::string lost_;                   // why it is not up to date; "" if it is
  std::set<absl::StatusCode> causes_;  // counted since it was
};

void Watcher::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const base::Instant begin = client_.clock().Steady();
    const absl::Status step = resource_version_.empty() ? Begin(stop) : Follow(stop);
    if (stop.stop_requested()) return;
    // One that listed and lost its place at once, again and again, has not recovered.
    if (client_.clock().Steady() - begin >= options_.longest_pause) backoff_.Reset();
    if (step.ok()) continue;
    if (absl::IsUnimplemented(step) && TryOlderVersion()) continue;
    Lost(step);
    client_.clock().Wait(PauseAfter(step), stop);
  }
}

// False after the last of them: then it begins again with the first.
bool Watcher::TryOlderVersion() {
  resource_version_.clear();
  const bool is_left = older_tried_ < options_.older_versions.size();
  selection_.resource.version =
      is_left ? options_.older_versions[older_tried_++] : options_.selection.resource.version;
  if (!is_left) older_tried_ = 0;
  return is_left;
}

milliseconds Watcher::PauseAfter(const absl::Status& step) {
  const milliseconds pause = std::exchange(retry_after_, std::nullopt).value_or(backoff_.Next());
  return IsRefusal(step.code()) ? options_.refused_pause.value_or(pause) : pause;
}

absl::Status Watcher::Begin(const std::stop_token& stop) {
  return streams_lists_ ? BeginByStream(stop) : BeginByList(stop);
}

// Each page is handed on as it comes: no more than one is held, whatever there is in all. (What one
// node's agent follows fits into one: the pods, ResourceSlices and objects of that node.)
absl::Status Watcher::BeginByList(const std::stop_token& stop) {
  listed_.clear();
  ListPage page;
  do {
    ASSIGN_OR_RETURN(page, client_.ListPageAt(selection_, page.continue_token, stop));
    for (Object& object : page.list.items) {
      listed_.emplace(object.namespace_name, object.name);
      Put(std::move(object));
    }
  } while (!page.continue_token.empty());
  resource_version_ = std::move(page.list.resource_version);
  FinishListing();
  return absl::OkStatus();
}

// An old server refuses parameters that it does not know; one on an old etcd says in an event that
// it cannot.
bool Watcher::RefusesStreamingLists(const absl::StatusOr<std::optional<ApiError>>& end) const {
  if (told_) return !IsOneOf(told_->code, {410, 429});
  return end.ok() && *end && IsOneOf((*end)->code, {400, 405, 406, 415, 422});
}

absl::Status Watcher::BeginByStream(const std::stop_token& stop) {
  const base::Instant began = client_.clock().Steady();
  listing_ = true;
  listed_.clear();
  const auto end = Stream(
      fmt::format("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&{}", Renewal()),
      [] {}, stop);
  const bool complete = !std::exchange(listing_, false);
  if (!complete && RefusesStreamingLists(end)) {
    streams_lists_ = false;
    retry_after_.reset();
    return BeginByList(stop);
  }
  RETURN_IF_ERROR(end.status());
  if (*end) return Refused(**end);
  if (!complete) return absl::UnknownError(Tried() + ": the list ended before it was complete");
  return Ended(began);
}

absl::Status Watcher::Follow(const std::stop_token& stop) {
  const base::Instant began = client_.clock().Steady();
  const auto end = Stream(
      fmt::format("watch=1&resourceVersion={}&{}", UrlEscape(resource_version_), Renewal()),
      [this] { TakenUp(); }, stop);
  RETURN_IF_ERROR(end.status());
  return *end ? Refused(**end) : Ended(began);
}

// By the server, in order.
absl::Status Watcher::Ended(base::Instant began) const {
  if (client_.clock().Steady() - began >= kBrief) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{}: the server ended it within {} s", Tried(), kBrief.count()));
}

absl::StatusOr<std::optional<ApiError>> Watcher::Stream(const std::string& query,
                                                        const std::function<void()>& opened,
                                                        const std::stop_token& stop) {
  LineSplitter lines(options_.max_line_bytes);
  told_.reset();
  bool sound = true;  // what came made sense
  const auto receive = [&](std::string_view bytes) {
    absl::Status taken = lines.Add(bytes, [this](std::string_view line) { return Take(line); });
    sound = taken.ok();
    return taken;
  };
  auto end = client_.Stream(selection_, query, options_.silence, opened, receive, stop);
  if (!sound) resource_version_.clear();
  if (end.ok() && !*end && lines.InLine()) {
    return absl::UnknownError(Tried() + ": the stream ended in the middle of a line");
  }
  return end;
}

absl::Status Watcher::Take(std::string_view text) {
  absl::StatusOr<WatchLine> line = ParseWatchLine(text);
  if (!line.ok()) {
    return absl::InternalError("no watch event: " + std::string(line.status().message()));
  }
  if (line->type == WatchLine::Type::kError) {
    told_ =
        ParseStatus(line->object.json).value_or(ApiError{.message = "an error without a Status"});
    return Refused(*told_);
  }
  std::string version = line->object.resource_version;
  if (line->type == WatchLine::Type::kDeleted) {
    Remove(line->object);
  } else if (line->type != WatchLine::Type::kBookmark) {
    Put(std::move(line->object));
  }
  if (listing_ && !line->initial_end)
    return absl::OkStatus();  // a place in the midst of a list is none
  resource_version_ = std::move(version);
  if (std::exchange(listing_, false)) FinishListing();
  return absl::OkStatus();
}

// The place is kept only where the server is merely busy.
absl::Status Watcher::Refused(const ApiError& error) {
  if (!IsOneOf(error.code, {401, 403, 429, 500, 502, 503})) resource_version_.clear();
  if (error.retry_after) {
    retry_after_ = std::min<milliseconds>(*error.retry_after, options_.longest_pause);
  }
  return ToStatus(error, Tried());
}

void Watcher::Put(Object object) {
  const Key key(object.namespace_name, object.name);
  if (listing_) listed_.insert(key);
  const auto known = known_.find(key);
  WatchEvent::Kind kind =
      known == known_.end() ? WatchEvent::Kind::kAdded : WatchEvent::Kind::kModified;
  if (known != known_.end()) {
    if (known->second.uid != object.uid) {
      Remove(Object(known->second));
      kind = WatchEvent::Kind::kAdded;
    } else if (known->second.resource_version == object.resource_version) {
      return;
    }
  }
  known_[key] = {.namespace_name = object.namespace_name,
                 .name = object.name,
                 .uid = object.uid,
                 .resource_version = object.resource_version,
                 .generation = object.generation};
  handle_({.kind = kind, .object = std::move(object)});
}

void Watcher::Remove(const Object& object) {
  if (known_.erase(Key(object.namespace_name, object.name)) == 0) return;
  handle_({.kind = WatchEvent::Kind::kDeleted, .object = object});
}

void Watcher::FinishListing() {
  std::vector<Object> gone;
  for (const auto& [key, object] : known_) {
    if (!listed_.contains(key)) gone.push_back(object);
  }
  for (const Object& object : gone) Remove(object);
  listed_.clear();
  Synced();
}

// What the server has left out meanwhile comes now.
void Watcher::TakenUp() {
  if (!lost_.empty()) Synced();
}

void Watcher::Synced() {
  lost_.clear();
  causes_.clear();
  handle_({.kind = WatchEvent::Kind::kSynced});
}

void Watcher::Lost(const absl::Status& status) {
  if (causes_.insert(status.code()).second) client_.WatchLost(selection_.resource, status.code());
  std::string reason(status.message());
  if (reason == lost_) return;
  lost_ = std::move(reason);
  handle_({.kind = WatchEvent::Kind::kLost, .reason = lost_, .code = status.code()});
}

// Streams of many watches are not to end together.
std::string Watcher::Renewal() const {
  const auto seconds = static_cast<double>(options_.renewal.count()) * (1 + client_.random()());
  return fmt::format("allowWatchBookmarks=true&timeoutSeconds={:.0f}", seconds);
}

}  // namespace

Watch::Watch(Client& client, WatchOptions options, Handle handle)
    : thread_([&client, options = std::move(options), handle = std::move(handle)](
                  const std::stop_token& stop) { Watcher(client, options, handle).Run(stop); }) {}

}  // namespace kube
