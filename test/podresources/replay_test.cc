#include "podresources/replay.h"

#include <filesystem>
#include <memory>
#include <string>

#include "podresources/client.h"
#include "test/support/shared.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(Replay, ReadsBothSpellingsOfNamesAndNumbersAsTextOrNumbers) {
  ASSERT_OK_AND_ASSIGN(const Assignments camel, ParseRecording(R"({
      "list": {"podResources": [{"name": "p", "namespace": "n", "containers": [{"name": "c",
        "cpuIds": ["1", "2"], "memory": [{"memoryType": "memory", "size": "5"}]}]}]},
      "allocatable": {"cpuIds": ["1", "2"]}})"));
  ASSERT_OK_AND_ASSIGN(const Assignments snake, ParseRecording(R"({
      "allocatable": {"cpu_ids": [1, 2], "of_a_later_release": {"x": [1]}}, "recordedBy": "hand",
      "list": {"pod_resources": [{"name": "p", "namespace": "n", "containers": [{"name": "c",
        "cpu_ids": [1, 2], "memory": [{"memory_type": "memory", "size": 5}]}]}]}})"));
  EXPECT_EQ(camel, snake);
  EXPECT_THAT(camel.pods, SizeIs(1));
  ASSERT_TRUE(camel.allocatable);
  EXPECT_EQ(camel.allocatable->cpus, base::CpuSet({1, 2}));
}

TEST(Replay, TakesListsReplyAloneAndThenDoesNotKnowTheAllocatable) {
  ASSERT_OK_AND_ASSIGN(const Assignments camel,
                       ParseRecording(R"({"podResources": [{"name": "p", "namespace": "n"}]})"));
  ASSERT_OK_AND_ASSIGN(const Assignments snake,
                       ParseRecording(R"({"pod_resources": [{"name": "p", "namespace": "n"}]})"));
  EXPECT_EQ(camel, snake);
  EXPECT_THAT(camel.pods, SizeIs(1));
  EXPECT_EQ(camel.allocatable, std::nullopt);
}

TEST(Replay, TellsAnEmptyListFromNoList) {
  ASSERT_OK_AND_ASSIGN(const Assignments empty,
                       ParseRecording(R"({"list": {}, "allocatable": null})"));
  EXPECT_THAT(empty.pods, IsEmpty());
  EXPECT_EQ(empty.allocatable, std::nullopt);
  for (const std::string json : {"{}", R"({"list": null})", R"({"allocatable": {}})"}) {
    EXPECT_THAT(ParseRecording(json),
                test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("List")))
        << json;
  }
}

TEST(Replay, SaysWhereAFileIsNoJson) {
  EXPECT_THAT(ParseRecording("{\"list\": {},\n  \"allocatable\": {]}"),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 2 column 19")));
  EXPECT_THAT(ParseRecording(""),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 1 column 1")));
}

TEST(Replay, SaysWhichFieldIsNotAsMeant) {
  EXPECT_THAT(ParseRecording("{\n\"list\": {\"podResources\": [{\"containers\": "
                             "[{\"cpuIds\": [\"four\"]}]}]}}"),
              test::StatusIs(StatusCode::kInvalidArgument,
                             AllOf(HasSubstr("\"list\", which begins at line 2"), HasSubstr("cpu"),
                                   HasSubstr("four"))));
}

TEST(Replay, RefusesWhatIsNoObjectOrTooDeep) {
  for (const std::string json : {"[]", "7", "\"list\"", "null", "[{\"list\": {}}]"}) {
    EXPECT_THAT(ParseRecording(json), Not(test::IsOk())) << json;
  }
  const std::string deep(100'000, '[');
  EXPECT_THAT(ParseRecording("{\"list\": " + deep),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("levels deep")));
  EXPECT_THAT(ParseRecording("{\"other\": " + deep),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("levels deep")));
}

TEST(Replay, OfAFileThatIsTooLargeIsWrongInputAndNoKubeletThatIsSilent) {
  test::TempTree files;
  files.Put("large.json", "");
  std::filesystem::resize_file(files.Path("large.json"), std::uintmax_t{1} << 40);
  EXPECT_THAT(Replay(files.Path("large.json"))->Read(),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("larger than")));
}

TEST(Replay, AnswersFromAFileThatIsReadAtEachQuestion) {
  test::TempTree files;
  files.Put("replies.json", R"({"podResources": [{"name": "p", "namespace": "n"}]})");
  const std::unique_ptr<Client> client = Replay(files.Path("replies.json"));
  ASSERT_OK_AND_ASSIGN(const Pod pod, client->Get("n", "p"));
  EXPECT_EQ(pod.name, "p");
  EXPECT_THAT(client->Get("n", "q"),
              test::StatusIs(StatusCode::kNotFound, HasSubstr("no pod n/q")));

  files.Put("replies.json", R"({"podResources": []})");
  ASSERT_OK_AND_ASSIGN(const Assignments read, client->Read());
  EXPECT_THAT(read.pods, IsEmpty());

  files.Put("replies.json", "{");
  EXPECT_THAT(client->Read(),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("replies.json: line 1")));
  files.Remove("replies.json");
  EXPECT_THAT(client->Read(), test::StatusIs(StatusCode::kNotFound, HasSubstr("replies.json")));
  files.Folder("replies.json");
  EXPECT_THAT(client->Read(),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("replies.json")));
}

TEST(Replay, ReadsRecordingsOfRealKubelets) {
  SKIP_WITHOUT_SHARED();
  for (const std::string& path : test::SharedFiles("kube/samples/podresources", "-list.json")) {
    ASSERT_OK_AND_ASSIGN(const Assignments read, ParseRecording(test::ReadShared(path)));
    EXPECT_THAT(read.pods, Not(IsEmpty())) << path;
    for (const Pod& pod : read.pods) EXPECT_THAT(pod.containers, Not(IsEmpty())) << path;
  }
}

}  // namespace
}  // namespace podresources
