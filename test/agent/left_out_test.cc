#include "agent/left_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(UndeclaredFields, AreReadFromTheRefusalOfOne) {
  EXPECT_THAT(UndeclaredFields("apply nodeplacements.plumbline.dev/status gpu-7: HTTP 500: failed "
                               "to create typed patch object (/gpu-7; plumbline.dev/v1alpha1, "
                               "Kind=NodePlacement): .status.seat: field not declared in schema"),
              ElementsAre("status.seat"));
}

TEST(UndeclaredFields, AreReadFromTheRefusalOfSeveralWhereverInAListTheyAre) {
  EXPECT_THAT(
      UndeclaredFields("HTTP 500: failed to create typed patch object: errors:\n"
                       "  .status.pods[0].seat: field not declared in schema\n"
                       "  .status.pods[1].seat: field not declared in schema\n"
                       "  .zones[name=\"node-0\"].colour: field not declared in schema\n"
                       "  .status.pods[0].containers[12].kernel.hue: field not declared in schema"),
      ElementsAre("status.pods.containers.kernel.hue", "status.pods.seat", "zones.colour"));
}

TEST(UndeclaredFields, AreNoneInAnotherRefusal) {
  EXPECT_THAT(UndeclaredFields("HTTP 422: zones[0].type: Required value"), IsEmpty());
  EXPECT_THAT(UndeclaredFields(": field not declared in schema"), IsEmpty());
}

TEST(Has, FindsAFieldInAnyEntry) {
  const std::string json = R"({"status":{"pods":[{"name":"a"},{"seat":{"x":null}}]}})";
  EXPECT_TRUE(Has(json, "status.pods.seat.x"));
  EXPECT_TRUE(Has(json, "status.pods"));
  EXPECT_FALSE(Has(json, "status.pods.x"));
  EXPECT_FALSE(Has(json, "status.pods.name.x"));
  EXPECT_FALSE(Has("", "status"));
}

TEST(Without, LeavesOutTheFieldsInEveryEntryAndNothingElse) {
  const std::string json =
      R"({"status":{"pods":[{"name":"a","seat":1},{"name":"b"},{"seat":{"x":2}}],"seat":3}})";
  EXPECT_EQ(Without(json, {"status.pods.seat"}),
            R"({"status":{"pods":[{"name":"a"},{"name":"b"},{}],"seat":3}})");
  EXPECT_EQ(Without(json, {"status.pods", "status.nothing", "x.y"}), R"({"status":{"seat":3}})");
  EXPECT_EQ(Without(json, {}), json);
}

TEST(Without, KeepsNumbersAndTextAsTheyWere) {
  const std::string json = R"({"a":9223372036854775807,"b":"ü \" \n","c":true,"d":[]})";
  EXPECT_EQ(Without(json, {"x"}), json);
}

}  // namespace
}  // namespace agent
