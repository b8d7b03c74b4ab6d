#include "kube/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The one document of a text.
std::string Json(const std::string& yaml) {
  const absl::StatusOr<std::vector<std::string>> documents = YamlToJson(yaml);
  if (!documents.ok()) return documents.status().ToString();
  return documents->size() == 1 ? documents->front() : "not one document";
}

MATCHER_P(Refuses, message, "") {
  return testing::ExplainMatchResult(
      test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)), arg, result_listener);
}

TEST(YamlToJson, ReadsMapsListsAndTexts) {
  EXPECT_EQ(Json("a:\n- b\n- {c: d, e: [f]}\n- |\n  two\n  lines\n- >\n  one\n  line\n"),
            R"({"a":["b",{"c":"d","e":["f"]},"two\nlines\n","one line\n"]})");
}

TEST(YamlToJson, TakesWordsForTruthValuesAsKubectlDoes) {
  EXPECT_EQ(Json("[true, True, TRUE, yes, Y, on]"), "[true,true,true,true,true,true]");
  EXPECT_EQ(Json("[false, no, N, Off]"), "[false,false,false,false]");
  EXPECT_EQ(Json("[tRue, yEs, maybe]"), R"(["tRue","yEs","maybe"])");
}

TEST(YamlToJson, TakesWordsForNothing) {
  EXPECT_EQ(Json("a: ~\nb: null\nc: Null\nd:\n"), R"({"a":null,"b":null,"c":null,"d":null})");
}

TEST(YamlToJson, ReadsWholeNumbersOfEveryBase) {
  EXPECT_EQ(Json("[0, -1, +1, 0x1f, 017, 0o17, 0b101, 1_000, 08]"), "[0,-1,1,31,15,15,5,1000,8]");
  EXPECT_EQ(Json("[18446744073709551615, -9223372036854775808]"),
            "[18446744073709551615,-9223372036854775808]");
}

TEST(YamlToJson, ReadsFractions) {
  EXPECT_EQ(Json("[0.1, .5, 5., 1e3, 1E-3, 123456789012345678901234567890]"),
            "[0.1,0.5,5,1000,0.001,1.2345678901234568e+29]");
}

TEST(YamlToJson, LeavesWhatIsNoNumberAText) {
  EXPECT_EQ(Json("[500m, 1Gi, '1', \"true\", 0x, 1:30, 2026-11-29, 1e, -, 1e400]"),
            R"(["500m","1Gi","1","true","0x","1:30","2026-11-29","1e","-","1e400"])");
}

TEST(YamlToJson, GoesByATag) {
  EXPECT_EQ(Json("[!!str 1, !!int '5', !!float 1, !!bool yes, !!null '']"),
            R"(["1",5,1,true,null])");
  EXPECT_THAT(YamlToJson("!!int five"), Refuses("line 1: \"five\" is nothing"));
  EXPECT_THAT(YamlToJson("!house five"), Refuses("line 1: \"five\" is nothing"));
}

TEST(YamlToJson, RefusesNumbersThatJsonDoesNotHave) {
  EXPECT_THAT(YamlToJson("a: .inf"), Refuses("line 1: \".inf\" is nothing"));
  EXPECT_THAT(YamlToJson("a: .NaN"), Refuses("line 1: \".NaN\" is nothing"));
}

TEST(YamlToJson, MakesTextsOfKeys) {
  EXPECT_EQ(Json("1: a\ntrue: b\n0x10: c\n'~': d\n"), R"({"1":"a","true":"b","16":"c","~":"d"})");
  EXPECT_THAT(YamlToJson("~: a"), Refuses("line 1: a key that is"));
  EXPECT_THAT(YamlToJson("a: 1\n[b]: c\n"), Refuses("line 2: a key that is"));
}

TEST(YamlToJson, RefusesAKeyThatAppearsTwice) {
  EXPECT_THAT(YamlToJson("a: 1\nb: {c: 1}\na: 2\n"),
              Refuses("line 3: the key \"a\" appears twice"));
  EXPECT_THAT(YamlToJson("{\"a\": 1, \"b\": {\"a\": 1}, \"a\": 2}"),
              Refuses("the key \"a\" appears twice"));
}

TEST(YamlToJson, FollowsAliases) {
  EXPECT_EQ(Json("a: &x {b: 1}\nc: [*x, *x]\nd: &y e\nf: *y\n"),
            R"({"a":{"b":1},"c":[{"b":1},{"b":1}],"d":"e","f":"e"})");
}

TEST(YamlToJson, MergesWhatAMergeKeyNames) {
  EXPECT_EQ(Json("x: &x {a: 1, b: 1}\nm: {<<: *x, b: 2}\n"),
            R"({"x":{"a":1,"b":1},"m":{"a":1,"b":2}})");
  EXPECT_EQ(Json("x: &x {a: 1}\nz: &z {a: 2, b: 2}\nm: {<<: [*x, *z]}\n"),
            R"({"x":{"a":1},"z":{"a":2,"b":2},"m":{"a":1,"b":2}})");
  EXPECT_EQ(Json("'<<': 1"), R"({"<<":1})");
  EXPECT_THAT(YamlToJson("<<: 5"), Refuses("line 1: << without a map"));
}

TEST(YamlToJson, LetsALaterMergeKeyReplaceWhatStandsBeforeAsKubectlDoes) {
  EXPECT_EQ(Json("{b: 2, <<: {b: 1}}"), R"({"b":1})");
}

TEST(YamlToJson, RefusesAnAliasToItself) {
  EXPECT_THAT(YamlToJson("a: &a [*a]"), Refuses("line 1: an alias within what it stands for"));
  EXPECT_THAT(YamlToJson("a: *b"), Refuses("line 1"));
}

TEST(YamlToJson, RefusesAliasesThatGrowWithoutBound) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  std::string merged = "a0: &a0 {k: v}\n";
  for (int i = 1; i < 60; ++i) {
    const std::string own = "a" + std::to_string(i);
    const std::string last = "*a" + std::to_string(i - 1);
    laughs += own + ": &" + own + " [" + last + ", " + last + ", " + last + "]\n";
    merged += own + ": &" + own + " {<<: " + last + ", p: " + last + ", q: " + last + "}\n";
  }
  EXPECT_THAT(YamlToJson(laughs), Refuses("too many values"));
  EXPECT_THAT(YamlToJson(merged), Refuses("too many values"));
  const std::string text(1 << 20, 'x');
  std::string copies = "a: &a " + text + "\nb: [*a";
  for (int i = 0; i < 100; ++i) copies += ", *a";
  EXPECT_THAT(YamlToJson(copies + "]\n"), Refuses("too many values"));
}

TEST(YamlToJson, RefusesDeepNesting) {
  std::string chain = "a0: &a0 [x]\n";
  for (int i = 1; i < 200; ++i) {
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
             "]\n";
  }
  EXPECT_THAT(YamlToJson(chain), Refuses("nested too deeply"));
  for (const char* level : {"[", "{a: ", "- ", "? "}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += level;
    EXPECT_FALSE(YamlToJson(deep).ok()) << level;
  }
  EXPECT_THAT(YamlToJson("{\"a\":" + std::string(100000, '[')), Refuses("nested too deeply"));
  EXPECT_OK(YamlToJson(std::string(100, '[') + "1" + std::string(100, ']')));
  EXPECT_THAT(YamlToJson(std::string(101, '[') + std::string(101, ']')), Refuses("too deeply"));
}

TEST(YamlToJson, RefusesTooMuchText) {
  EXPECT_THAT(YamlToJson(std::string((std::size_t{64} << 20) + 1, ' ')), Refuses("too large"));
}

TEST(YamlToJson, GivesOneTextForEachDocumentThatHoldsSomething) {
  EXPECT_THAT(*YamlToJson("# first\n---\na: 1\n---\n# none\n---\n~\n---\n[b]\n...\n"),
              ElementsAre(R"({"a":1})", R"(["b"])"));
  EXPECT_THAT(*YamlToJson(""), IsEmpty());
  EXPECT_THAT(*YamlToJson("---\n---\n"), IsEmpty());
}

TEST(YamlToJson, PassesJsonOnWithItsNumbersUntouched) {
  EXPECT_THAT(*YamlToJson(" { \"a\" : 1.50e+3, \"b\": [ 123456789012345678901234567890 ] }\n{}\n"),
              ElementsAre(R"({"a":1.50e+3,"b":[123456789012345678901234567890]})", "{}"));
}

TEST(YamlToJson, ReadsAMapInBracesThatIsNoJson) { EXPECT_EQ(Json("{a: b}"), R"({"a":"b"})"); }

TEST(YamlToJson, TellsWhereATextIsBroken) {
  EXPECT_THAT(YamlToJson("a: 1\nb: [\n"), Refuses("YAML, line 3"));
  EXPECT_THAT(YamlToJson("{\"a\": 1,"), Refuses("JSON, byte 8"));
}

TEST(YamlToJson, RefusesABracketThatClosesNothing) {
  for (const char* text : {"{a: b}}", "a: b\n---\n]", "}", "[] ]", "{\"a\": 1}}"}) {
    EXPECT_FALSE(YamlToJson(text).ok()) << text;
  }
}

TEST(YamlToJson, RefusesTextThatIsNotUtf8) {
  for (const char* bytes : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf3", "\xe2\x82"}) {
    EXPECT_THAT(YamlToJson(std::string("a: b") + bytes), Refuses("not UTF-8"));
    EXPECT_THAT(YamlToJson(std::string("{\"a\": \"") + bytes + "\"}"), Refuses("not UTF-8"));
  }
  EXPECT_EQ(Json("\xc2\xa2: \xe2\x82\xac\xf0\x9f\x98\x80"),
            "{\"\xc2\xa2\":\"\xe2\x82\xac\xf0\x9f\x98\x80\"}");
}

}  // namespace
}  // namespace kube
