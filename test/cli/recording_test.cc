#include "cli/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/files.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace cli {
namespace {

using test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

std::string SeedLine() {
  return test::Slurp("test/fuzz/seeds/recording_fuzz/add-remove-health.jsonl");
}

// The line with one piece of its text changed.
std::string With(const std::string& old_text, const std::string& new_text) {
  std::string line = SeedLine();
  const std::size_t at = line.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return line.replace(at, old_text.size(), new_text);
}

void ExpectRefused(const std::string& old_text, const std::string& new_text,
                   const std::string& why) {
  EXPECT_THAT(ParseRecording(With(old_text, new_text)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
}

TEST(ParseRecording, ReadsNodeEventsAndVerdicts) {
  ASSERT_OK_AND_ASSIGN(const Recording recording, ParseRecording(SeedLine()));
  ASSERT_EQ(recording.node.numa_nodes.size(), 2U);
  EXPECT_EQ(recording.node.numa_nodes[0].cpus.ToString(), "0-1,4-5");
  EXPECT_EQ(recording.node.devices.size(), 3U);
  ASSERT_EQ(recording.events.size(), 4U);
  EXPECT_EQ(recording.events[0].verdict.containers[1].cpus.ToString(), "1,5");
  ASSERT_TRUE(recording.events[0].live);
  EXPECT_EQ(recording.events[0].live->containers[1].memory[0].numa_nodes, base::NumaMask{0});
  EXPECT_EQ(recording.events[2].pod.uid, "p0");
  EXPECT_TRUE(recording.events[3].not_started);
  EXPECT_EQ(recording.events[3].verdict.rejected_affinity, base::NumaMask{0});
}

TEST(ParseRecording, TakesTheKubeletsVersionFromTheRecording) {
  ASSERT_OK_AND_ASSIGN(const Recording own, ParseRecording(With("\"v1.37.2\"", "\"v1.35.4\"")));
  EXPECT_EQ(own.node.kubelet.version, "v1.35.4");
  ASSERT_OK_AND_ASSIGN(const Recording none,
                       ParseRecording(With("\"kubelet_version\":\"v1.37.2\",", "")));
  EXPECT_EQ(none.node.kubelet.version, "v1.37.2");
}

TEST(ParseRecording, NamesTheFieldOfAWrongType) {
  ExpectRefused("\"cpu_milli\":9000", "\"cpu_milli\":\"9000\"",
                "events[3].pod.containers[0].limits.cpu_milli: is no whole number");
  ExpectRefused("\"admit\":false", "\"admit\":\"no\"", "events[3].verdict.admit: is neither");
  ExpectRefused("[[0,4],[1,5]]", "[[0,4],[1,\"5\"]]",
                "node.numa[0].core_groups[0].cores[1][1]: is no whole number");
  ExpectRefused("\"affinity\":[0]", "\"affinity\":0",
                "events[0].verdict.containers[0].affinity: is no list");
  ExpectRefused("\"full-pcpus-only\":\"true\"", "\"full-pcpus-only\":true",
                "node.cpu_options.full-pcpus-only: is no text");
  ExpectRefused("\"cpus\":\"1,5\"", "\"cpus\":\"1,x\"", "containers[0].cpus: ");
  ExpectRefused("\"unhealthy\":[\"g0\"]", "\"unhealthy\":[null]",
                "events[1].unhealthy[0]: is null");
  ExpectRefused("\"hugepages-2Mi\":2097152", "\"hugepages-2Mi\":2.5",
                "node.numa[0].hugepages.hugepages-2Mi: is no whole number");
  ExpectRefused("\"cpu\":\"7\"", "\"cpu\":\"seven\"", "node_allocatable.cpu: ");
  ExpectRefused("\"distances\":[20,10]", "\"distances\":[20]",
                "node.numa[1].distances: has 1 entries for 2 NUMA nodes");
}

TEST(ParseRecording, NamesTheFieldThatIsMissing) {
  ExpectRefused("\"id\":1,", "", "node.numa[1].id: is missing");
  ExpectRefused("\"admit\":true,", "", "events[0].verdict.admit: is missing");
  ExpectRefused("\"op\":\"remove\",\"uid\":\"p0\"", "\"op\":\"remove\"",
                "events[2].uid: is missing");
  ExpectRefused("\"topology_policy\"", "\"topologyPolicy\"", "node.topology_policy: is missing");
  ExpectRefused("\"events\"", "\"event\"", "events: is missing");
}

TEST(ParseRecording, RefusesNamesAndAmountsThatCannotBe) {
  ExpectRefused("\"best-effort\"", "\"besteffort\"",
                "node.topology_policy: \"besteffort\" is none");
  ExpectRefused("\"op\":\"remove\"", "\"op\":\"delete\"", "events[2].op: \"delete\" is none of");
  ExpectRefused("\"memory\":2147483648", "\"memory\":-1", "node.numa[0].memory: -1 is not within");
  ExpectRefused("\"name\":\"n\",", "\"name\":\"n\",\"name\":\"m\",", "\"name\" appears twice");
}

TEST(ParseRecording, RefusesWhatIsNoJsonObject) {
  EXPECT_THAT(ParseRecording(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("JSON")));
  EXPECT_THAT(ParseRecording("[]"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no object")));
  EXPECT_THAT(ParseRecording(std::string(200, '[') + std::string(200, ']')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("100 levels")));
}

TEST(ForEachLine, GivesEachLineWithItsNumberAlsoOneWithoutAnEndOrWithANul) {
  test::TempTree files;
  files.Put("lines", std::string("a\n\nb\0c\nd", 8));
  std::vector<std::string> lines;
  EXPECT_OK(ForEachLine(files.Path("lines"), [&](int number, const std::string& line) {
    lines.push_back(std::to_string(number) + line);
    return absl::OkStatus();
  }));
  EXPECT_THAT(lines, ElementsAre("1a", "2", std::string("3b\0c", 4), "4d"));
}

TEST(ForEachLine, SaysWhatItCannotRead) {
  const auto ignore = [](int, const std::string&) { return absl::OkStatus(); };
  EXPECT_THAT(ForEachLine("/no/such", ignore),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
  const test::TempTree folder;
  EXPECT_THAT(ForEachLine(folder.root(), ignore),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder.root())));
}

// "a\nb\n" as gzip -n packs it.
const std::string kPacked(
    "\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xe4\x4a\xe2\x02\0\x97\x2a\x57\x18\x04\0\0\0", 24);

std::vector<std::string> Lines(const std::string& bytes) {
  test::TempTree files;
  files.Put("lines.gz", bytes);
  std::vector<std::string> lines;
  const absl::Status read =
      ForEachLine(files.Path("lines.gz"), [&lines](int, const std::string& line) {
        lines.push_back(line);
        return absl::OkStatus();
      });
  if (!read.ok()) lines.push_back("error: " + std::string(read.message()));
  return lines;
}

TEST(ForEachLine, UnpacksAllMembersOfAGzipFile) {
  EXPECT_THAT(Lines(kPacked), ElementsAre("a", "b"));
  EXPECT_THAT(Lines(kPacked + kPacked), ElementsAre("a", "b", "a", "b"));
  EXPECT_THAT(Lines("\x1f"), ElementsAre("\x1f"));
  EXPECT_THAT(Lines(""), ElementsAre());
}

TEST(ForEachLine, DoesNotTakeAGzipFileForWholeThatWasCutOff) {
  for (std::size_t length = 2; length < kPacked.size(); ++length) {
    EXPECT_THAT(Lines(kPacked.substr(0, length)).back(), HasSubstr("cut off")) << length;
  }
}

TEST(ForEachLine, DoesNotPassOverWhatFollowsTheEndOfAGzipFile) {
  EXPECT_THAT(Lines(kPacked + "garbage").back(), HasSubstr("no gzip follows its end"));
  EXPECT_THAT(Lines(kPacked + "x").back(), HasSubstr("cut off"));
  EXPECT_THAT(Lines(kPacked + std::string(512, '\0')).back(), HasSubstr("no gzip follows"));
}

TEST(ForEachLine, SaysWhatIsWrongWithAGzipFile) {
  std::string other = kPacked;
  other[16] ^= 1;  // of the checksum
  EXPECT_THAT(Lines(other).back(), HasSubstr("incorrect data check"));
}

}  // namespace
}  // namespace cli
