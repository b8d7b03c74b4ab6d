#include "podresources/replay.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_tree.h"
#include "base/status_macros.h"
#include "podresources/client.h"
#include "proto/podresources.pb.h"

namespace podresources {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;
constexpr int kMaxDepth = 64;

// Where the values of the outermost object are in the text. protobuf parses them; it has no message
// for a file of two replies, and its errors do not say where they are.
class Members : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Members> {
 public:
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  explicit Members(const rapidjson::MemoryStream& stream) : stream_(stream) {}

  // The reader is behind a number or text, but still before the bracket that ends an object. One
  // that is outermost is no object.
  bool Default() { return depth_ > 0 && EndsAt(stream_.Tell()); }
  bool Key(const char* name, rapidjson::SizeType length, bool /*copy*/) {
    if (depth_ != 1) return true;
    name_.assign(name, length);
    spans_[name_].begin = stream_.Tell();
    return true;
  }
  bool StartObject() { return ++depth_ <= kMaxDepth; }
  bool StartArray() { return depth_ > 0 && ++depth_ <= kMaxDepth; }
  bool EndObject(rapidjson::SizeType /*count*/) {
    --depth_;
    return EndsAt(stream_.Tell() + 1);
  }
  bool EndArray(rapidjson::SizeType /*count*/) {
    --depth_;
    return EndsAt(stream_.Tell() + 1);
  }

  const std::map<std::string, Span>& Spans() const { return spans_; }

 private:
  bool EndsAt(std::size_t offset) {
    if (depth_ == 1) spans_[name_].end = offset;
    return true;
  }

  const rapidjson::MemoryStream& stream_;
  int depth_ = 0;
  std::string name_;  // the outermost member being read
  std::map<std::string, Span> spans_;
};

std::string Position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n') + 1;  // 0 if there is none
  return fmt::format("line {} column {}", lines + 1, before.size() - start + 1);
}

absl::StatusOr<std::map<std::string, Members::Span>> FindMembers(const std::string& json) {
  rapidjson::MemoryStream stream(json.data(), json.size());
  Members members(stream);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result =
      reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(stream,
                                                                                           members);
  if (!result.IsError()) return members.Spans();
  const std::string cause =
      result.Code() == rapidjson::kParseErrorTermination
          ? fmt::format("an object is meant, at most {} levels deep", kMaxDepth)
          : rapidjson::GetParseError_En(result.Code());
  return absl::InvalidArgumentError(fmt::format("{}: {}", Position(json, result.Offset()), cause));
}

// A member's text: from behind its name to its end, without the colon and the space around it.
std::string_view ValueOf(std::string_view json, const Members::Span& span) {
  std::string_view value = json.substr(span.begin, span.end - span.begin);
  const std::size_t start = value.find_first_not_of(": \t\r\n");
  return start == std::string_view::npos ? std::string_view() : value.substr(start);
}

absl::Status ParseMessage(std::string_view json, google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &message, options);
  if (status.ok()) return absl::OkStatus();
  // The first line; behind it protobuf quotes the text around the place.
  const std::string cause = status.message().as_string();
  return absl::InvalidArgumentError(cause.substr(0, cause.find('\n')));
}

// True if there is such a member and it is not null.
absl::StatusOr<bool> ParseMember(const std::string& json,
                                 const std::map<std::string, Members::Span>& members,
                                 const std::string& name, google::protobuf::Message& message) {
  const auto member = members.find(name);
  if (member == members.end()) return false;
  const std::string_view value = ValueOf(json, member->second);
  if (value == "null") return false;
  if (const absl::Status parsed = ParseMessage(value, message); !parsed.ok()) {
    return absl::InvalidArgumentError(fmt::format("\"{}\", which begins at {}: {}", name,
                                                  Position(json, member->second.begin),
                                                  std::string(parsed.message())));
  }
  return true;
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

class ReplayClient : public Client {
 public:
  explicit ReplayClient(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<Assignments> Read() override {
    ASSIGN_OR_RETURN(const base::FileTree root, base::FileTree::Open("/"));
    const absl::StatusOr<std::string> json = root.Read(AbsolutePath(path_), kMaxBytes);
    if (absl::IsNotFound(json.status())) return json.status();
    // Whatever else: no kubelet is behind it that might answer another time.
    if (!json.ok()) return absl::InvalidArgumentError(std::string(json.status().message()));
    absl::StatusOr<Assignments> recorded = ParseRecording(*json);
    if (recorded.ok()) return recorded;
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", path_, std::string(recorded.status().message())));
  }

  absl::StatusOr<Pod> Get(const std::string& namespace_name, const std::string& name) override {
    ASSIGN_OR_RETURN(const Assignments recorded, Read());
    for (const Pod& pod : recorded.pods) {
      if (pod.namespace_name == namespace_name && pod.name == name) return pod;
    }
    return absl::NotFoundError(fmt::format("no pod {}/{} in {}", namespace_name, name, path_));
  }

 private:
  const std::string path_;
};

}  // namespace

absl::StatusOr<RepliesFound> ParseReplies(const std::string& json,
                                          v1::ListPodResourcesResponse& list,
                                          v1::AllocatableResourcesResponse& allocatable) {
  ASSIGN_OR_RETURN(const auto members, FindMembers(json));
  RepliesFound found;
  if (members.contains("podResources") || members.contains("pod_resources")) {
    RETURN_IF_ERROR(ParseMessage(json, list));
    found.list = true;
    return found;
  }
  ASSIGN_OR_RETURN(found.list, ParseMember(json, members, "list", list));
  ASSIGN_OR_RETURN(found.allocatable, ParseMember(json, members, "allocatable", allocatable));
  return found;
}

absl::StatusOr<Assignments> ParseRecording(const std::string& json) {
  v1::ListPodResourcesResponse list;
  v1::AllocatableResourcesResponse allocatable;
  ASSIGN_OR_RETURN(const RepliesFound found, ParseReplies(json, list, allocatable));
  if (!found.list) {
    return absl::InvalidArgumentError(
        "no reply of List: neither \"list\" nor \"podResources\" is there");
  }
  const v1::AllocatableResourcesResponse* const known = found.allocatable ? &allocatable : nullptr;
  RETURN_IF_ERROR(CheckSize(list, known));
  return Decode(list, known);
}

std::unique_ptr<Client> Replay(std::string path) {
  return std::make_unique<ReplayClient>(std::move(path));
}

}  // namespace podresources
