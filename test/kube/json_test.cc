#include "kube/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(JsonObject, GivesMembersAsTheyStandInTheText) {
  ASSERT_OK_AND_ASSIGN(const JsonObject object, JsonObject::Parse(R"( {
      "text" : "a\nb\u00e9",  "number": 1e99 , "list":[ 1, {"x": [2]} ,"three"],
      "object": {"list": [ ], "null": null}, "flag":true, "last" : false })"));
  EXPECT_EQ(object.Raw("text"), R"("a\nb\u00e9")");
  EXPECT_EQ(object.Raw("number"), "1e99");
  EXPECT_EQ(object.Raw("list"), R"([ 1, {"x": [2]} ,"three"])");
  EXPECT_EQ(object.Raw("object"), R"({"list": [ ], "null": null})");
  EXPECT_EQ(object.Raw("flag"), "true");
  EXPECT_EQ(object.Raw("last"), "false");
  EXPECT_EQ(object.Text("text").value(), "a\nb\xc3\xa9");
}

TEST(JsonObject, TakesAbsentAndNullForTheSame) {
  ASSERT_OK_AND_ASSIGN(const JsonObject object, JsonObject::Parse(R"({"a": null})"));
  EXPECT_FALSE(object.Has("a"));
  EXPECT_EQ(object.Text("a").value(), "");
  EXPECT_EQ(object.Number("b").value(), std::nullopt);
  EXPECT_EQ(object.Flag("b").value(), false);
  EXPECT_TRUE(object.Objects("b").value().empty());
}

TEST(JsonObject, TakesTheLastOfTwoOfOneName) {
  ASSERT_OK_AND_ASSIGN(const JsonObject object, JsonObject::Parse(R"({"a": "x", "a": "y"})"));
  EXPECT_EQ(object.Text("a").value(), "y");
}

TEST(JsonObject, NamesTheFieldThatIsWrong) {
  ASSERT_OK_AND_ASSIGN(
      const JsonObject object,
      JsonObject::Parse(R"({"users": [{"user": {"token": 5, "names": ["a", 1]}}]})"));
  ASSERT_OK_AND_ASSIGN(const auto users, object.Objects("users"));
  ASSERT_OK_AND_ASSIGN(const JsonObject user, users[0].Object("user"));
  EXPECT_THAT(user.Text("token"), StatusIs(kInvalid, "users[0].user.token: is no string"));
  EXPECT_THAT(user.Flag("token"), StatusIs(kInvalid, HasSubstr("neither true nor false")));
  EXPECT_THAT(user.Texts("names"), StatusIs(kInvalid, "users[0].user.names[1]: is no string"));
  EXPECT_THAT(user.Objects("names"), StatusIs(kInvalid, "users[0].user.names[0]: is no object"));
  EXPECT_THAT(user.Object("token"), StatusIs(kInvalid, "users[0].user.token: is no object"));
  EXPECT_THAT(object.Number("users"), StatusIs(kInvalid, "users: is no whole number"));
}

TEST(JsonObject, NamesItsMembers) {
  ASSERT_OK_AND_ASSIGN(const JsonObject object,
                       JsonObject::Parse(R"({"nvidia.com/gpu": "8", "cpu": "64", "gone": null})"));
  EXPECT_THAT(object.Names(), testing::ElementsAre("cpu", "nvidia.com/gpu"));
}

TEST(JsonObject, ReadsNumbers) {
  ASSERT_OK_AND_ASSIGN(const JsonObject object,
                       JsonObject::Parse(R"({"nodes": [1, 0], "none": [], "words": [1, "x"]})"));
  EXPECT_THAT(object.Numbers("nodes").value(), testing::ElementsAre(1, 0));
  EXPECT_THAT(object.Numbers("none").value(), testing::IsEmpty());
  EXPECT_THAT(object.Numbers("absent").value(), testing::IsEmpty());
  EXPECT_THAT(object.Numbers("words"), StatusIs(kInvalid, "words: is no list of whole numbers"));
}

TEST(JsonObject, RefusesWhatIsNoJson) {
  EXPECT_THAT(JsonObject::Parse(""), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(JsonObject::Parse("<html>"), StatusIs(kInvalid, HasSubstr("is no JSON")));
  EXPECT_THAT(JsonObject::Parse("{} {}"), StatusIs(kInvalid, HasSubstr("at byte 3")));
  EXPECT_THAT(JsonObject::Parse("[1]"), StatusIs(kInvalid, "is no object"));
  EXPECT_THAT(JsonObject::Parse(std::string("{}\0{}", 5)), StatusIs(kInvalid, HasSubstr("NUL")));
  EXPECT_THAT(JsonObject::Parse("{\"a\": \"\xff\"}"), StatusIs(kInvalid, HasSubstr("is no JSON")));
}

std::string Times(int count, const std::string& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

std::string Nested(int depth) {  // the outermost is the object
  return R"({"a":)" + Times(depth - 1, "[") + Times(depth - 1, "]") + R"(,"b":"x"})";
}

TEST(JsonObject, FollowsAThousandLevels) {
  const std::string text = Nested(1000);
  ASSERT_OK_AND_ASSIGN(const JsonObject object, JsonObject::Parse(text));
  EXPECT_EQ(object.Raw("a").size(), 2U * 999);
  EXPECT_EQ(object.Text("b").value(), "x");
  EXPECT_THAT(JsonObject::Parse(Nested(1001)),
              StatusIs(kInvalid, "is nested deeper than 1000 levels"));
}

// How much more memory this process had at once, in KiB, than ever before.
template <class Action>
long TakenBy(const Action& action) {
  const auto most = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = most();
  action();
  return most() - before;
}

TEST(JsonObject, DoesNotTakeMemoryForEachOfEightMillionBrackets) {
  const std::string text = R"({"a":)" + std::string(std::size_t{8} << 20, '[');
  EXPECT_LT(TakenBy([&] {
              EXPECT_THAT(JsonObject::Parse(text),
                          StatusIs(kInvalid, "is nested deeper than 1000 levels"));
            }),
            8 << 10);  // less than the text itself
}

TEST(JsonObject, DoesNotTakeMemoryForEachOfAMillionEmptyMembers) {
  const std::string text = R"({"a":[)" + Times(1 << 20, "{},") + "{}]}";
  ASSERT_OK_AND_ASSIGN(const JsonObject object, JsonObject::Parse(text));
  EXPECT_LT(TakenBy([&] {
              EXPECT_THAT(object.Objects("a"),
                          StatusIs(kInvalid, "a: has more than 100000 members"));
            }),
            32 << 10);  // a few times the text
  const std::string most = R"({"a":[)" + Times(99'999, "{},") + "{}]}";
  EXPECT_EQ(JsonObject::Parse(most)->Objects("a")->size(), 100'000U);
}

TEST(JsonQuote, EscapesWhatJsonMustEscape) { EXPECT_EQ(JsonQuote("a\"b\\c\n"), R"("a\"b\\c\n")"); }

}  // namespace
}  // namespace kube
