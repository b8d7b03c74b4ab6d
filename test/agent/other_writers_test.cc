#include "agent/other_writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/agent/api_objects.h"
#include "test/support/status.h"

namespace agent {
namespace {

using test::ApiObject;
using test::Managed;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kZones[] = R"({"f:zones":{}})";
constexpr char kNode[] = R"({"apiVersion":"v1","kind":"Node","name":"gpu-7","uid":"node-1"})";
constexpr char kNamespace[] = R"({"apiVersion":"v1","kind":"Namespace","name":"nfd","uid":"ns-1"})";

kube::Metadata Metadata(const ApiObject& object) {
  return kube::ReadMetadata(kube::ParseObject(test::Json(object)).value()).value();
}

TEST(OtherWriters, OwnContentAndAreNotUs) {
  EXPECT_THAT(OtherWriters(Metadata(
                  {.managed = {Managed("plumbline-agent", kZones), Managed("nfd", kZones),
                               Managed("editor", R"({"f:attributes":{}})"),
                               Managed("editor", R"({"f:topologyPolicies":{}})"),
                               Managed("labeller", R"({"f:metadata":{"f:labels":{}}})")}})),
              ElementsAre("editor", "nfd"));
  EXPECT_THAT(OtherWriters(Metadata({.managed = {Managed("plumbline-agent", kZones)}})), IsEmpty());
}

TEST(RemovalOf, TakesAwayWhatTheyLeftAndKeepsTheRest) {
  const std::string ours = Managed(
      "plumbline-agent", R"({"f:metadata":{"f:annotations":{"f:fingerprint":{}}},"f:zones":{}})");
  const std::string person =
      Managed("kubectl", R"({"f:metadata":{"f:annotations":{"f:note":{}}}})");
  const kube::Metadata metadata =
      Metadata({.version = "12",
                .managed = {ours, person,
                            Managed("nfd", R"({"f:metadata":{"f:annotations":{"f:fingerprint":{},)"
                                           R"("f:rte-update":{}},"f:labels":{"f:by":{}},)"
                                           R"("f:ownerReferences":{"k:{\"uid\":\"ns-1\"}":{}}},)"
                                           R"("f:zones":{}})")},
                .owners = std::string(kNode) + "," + kNamespace});
  const auto patch =
      RemovalOf({"nfd"}, metadata, R"({"zones":[{"name":"node-0"}],"attributes":[{"name":"a"}]})");
  ASSERT_OK(patch);
  EXPECT_EQ(*patch, R"({"metadata":{"resourceVersion":"12","annotations":{"rte-update":null},)"
                    R"("labels":{"by":null},"ownerReferences":[)" +
                        std::string(kNode) + R"(],"managedFields":[)" + ours + "," + person +
                        R"(]},"attributes":[{"name":"a"}],"topologyPolicies":null,)"
                        R"("zones":[{"name":"node-0"}]})");
}

}  // namespace
}  // namespace agent
