#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::HasSubstr;

const Resource kNodePlacements = {"plumbline.dev", "v1alpha1", "nodeplacements"};
const Resource kPods = {"", "v1", "pods"};

TEST(PathOf, IsTheApiServersPath) {
  EXPECT_EQ(PathOf(ObjectName{kNodePlacements, "", "gpu-7", "status"}),
            "/apis/plumbline.dev/v1alpha1/nodeplacements/gpu-7/status");
  EXPECT_EQ(PathOf(ObjectName{kPods, "ml", "llm-0"}), "/api/v1/namespaces/ml/pods/llm-0");
  EXPECT_EQ(PathOf(Selection{.resource = kPods}), "/api/v1/pods");
  EXPECT_EQ(PathOf(ObjectName{kPods, "../x", "a/b?c"}), "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc");
}

TEST(ToString, NamesThingsAsKubectlDoes) {
  EXPECT_EQ(ToString(ObjectName{kNodePlacements, "", "gpu-7", "status"}),
            "nodeplacements.plumbline.dev/status gpu-7");
  EXPECT_EQ(ToString(ObjectName{kPods, "ml", "llm-0"}), "pods ml/llm-0");
  EXPECT_EQ(ToString(Selection{kPods, "ml", "spec.nodeName=gpu-7", "a=b"}),
            "pods in ml with spec.nodeName=gpu-7 labelled a=b");
}

TEST(ParseObject, KeepsTheTextAndReadsTheMetadata) {
  const std::string json =
      R"({"kind": "Pod", "metadata": {"name": "llm-0", "namespace": "ml", "uid": "u", )"
      R"("resourceVersion": "12", "generation": 3}, "spec": {}})";
  ASSERT_OK_AND_ASSIGN(const Object object, ParseObject(json));
  EXPECT_EQ(object, (Object{"ml", "llm-0", "u", "12", 3, json}));
}

TEST(ParseObject, RefusesAnObjectWithoutAName) {
  EXPECT_THAT(ParseObject("{}"),
              StatusIs(absl::StatusCode::kInvalidArgument, "metadata.name: is empty"));
}

TEST(ParseListPage, HasTheItemsTextsAsTheyStand) {
  ASSERT_OK_AND_ASSIGN(
      const ListPage page,
      ParseListPage(R"({"kind":"PodList","metadata":{"resourceVersion":"9","continue":"abc"},)"
                    R"("items":[ {"metadata":{"name":"a"}} , {"metadata":{"name":"b"}}]})"));
  EXPECT_EQ(page.continue_token, "abc");
  EXPECT_EQ(page.list.resource_version, "9");
  ASSERT_EQ(page.list.items.size(), 2U);
  EXPECT_EQ(page.list.items[1].json, R"({"metadata":{"name":"b"}})");
}

TEST(ParseListPage, TakesNullForNoItems) {  // as Go writes a list of none
  ASSERT_OK_AND_ASSIGN(
      const ListPage page,
      ParseListPage(R"({"kind":"PodList","metadata":{"resourceVersion":"9"},"items":null})"));
  EXPECT_TRUE(page.list.items.empty());
}

TEST(ParseListPage, TakesNothingElseForAListOfNone) {
  EXPECT_THAT(ParseListPage("{}"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kind")));
  EXPECT_THAT(ParseListPage(R"({"kind":"Status","metadata":{}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"Status\" is no list")));
  EXPECT_THAT(ParseListPage(R"({"kind":"PodList"})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("resourceVersion")));
  EXPECT_THAT(ParseListPage(R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":{}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "items: is no list"));
}

}  // namespace
}  // namespace kube
