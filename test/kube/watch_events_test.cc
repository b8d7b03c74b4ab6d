#include "kube/watch_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseWatchLine, ReadsAnObject) {
  ASSERT_OK_AND_ASSIGN(
      const WatchLine line,
      ParseWatchLine(
          R"({"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"}}})"));
  EXPECT_EQ(line.type, WatchLine::Type::kModified);
  EXPECT_EQ(line.object.name, "a");
  EXPECT_EQ(line.object.json, R"({"metadata":{"name":"a","resourceVersion":"7"}})");
}

TEST(ParseWatchLine, ReadsABookmarkAndTheEndOfTheInitialList) {  // as kube-apiserver 1.37 sent it
  ASSERT_OK_AND_ASSIGN(
      const WatchLine end,
      ParseWatchLine(R"({"type":"BOOKMARK","object":{"apiVersion":"topology.node.k8s.io/v1alpha2",)"
                     R"("kind":"NodeResourceTopology","metadata":{"annotations":{)"
                     R"("k8s.io/initial-events-end":"true"},"resourceVersion":"216"}}})"));
  EXPECT_TRUE(end.initial_end);
  EXPECT_EQ(end.object.resource_version, "216");
  ASSERT_OK_AND_ASSIGN(
      const WatchLine plain,
      ParseWatchLine(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})"));
  EXPECT_FALSE(plain.initial_end);
}

TEST(ParseWatchLine, KeepsTheStatusOfAnError) {
  ASSERT_OK_AND_ASSIGN(const WatchLine line,
                       ParseWatchLine(R"({"type":"ERROR","object":{"kind":"Status","code":410}})"));
  EXPECT_EQ(line.type, WatchLine::Type::kError);
  EXPECT_EQ(line.object.json, R"({"kind":"Status","code":410})");
}

TEST(ParseWatchLine, SaysWhatOfItIsNoEvent) {
  EXPECT_THAT(ParseWatchLine("x"), StatusIs(kInvalid, HasSubstr("is no JSON")));
  EXPECT_THAT(ParseWatchLine("{}"), StatusIs(kInvalid, "type: \"\" is unknown"));
  EXPECT_THAT(ParseWatchLine(R"({"type":"ADDED"})"), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(ParseWatchLine(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"),
              StatusIs(kInvalid, "an object without a resourceVersion"));
  EXPECT_THAT(ParseWatchLine(R"({"type":"BOOKMARK","object":{}})"),
              StatusIs(kInvalid, "an object without a resourceVersion"));
}

TEST(LineSplitter, PutsLinesTogetherHoweverTheyAreCut) {
  const std::string bytes = "one\ntwo\r\n\n \nthree\nfo";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    LineSplitter lines(5);
    std::vector<std::string> taken;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_OK(lines.Add(bytes.substr(at, piece), [&taken](std::string_view line) {
        taken.emplace_back(line);
        return absl::OkStatus();
      }));
    }
    EXPECT_THAT(taken, ElementsAre("one", "two\r", "three")) << piece;
    EXPECT_TRUE(lines.InLine());
  }
}

TEST(LineSplitter, RefusesALineThatIsTooLong) {
  LineSplitter lines(5);
  const auto take = [](std::string_view) { return absl::OkStatus(); };
  EXPECT_OK(lines.Add("123", take));
  EXPECT_THAT(lines.Add("456", take),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("longer than 5 bytes")));
}

}  // namespace
}  // namespace kube
