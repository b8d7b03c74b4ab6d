#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "placement/decode.h"
#include "placement/encode.h"
#include "test/placement/any.h"
#include "test/placement/scene.h"
#include "test/support/status.h"

namespace placement {
namespace {

using ::test::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string WithZones(const std::string& zones) {
  return R"({"kind":"NodeResourceTopology","metadata":{"name":"n"},"zones":)" + zones + "}";
}

TEST(ParseNodeResourceTopology, ReadsBackWhatTheAgentWrites) {
  EXPECT_TRUE(rc::check([] {
    const Observation seen = (*AnyScene()).Look();
    RC_PRE(seen.nrt.has_value());
    const absl::StatusOr<NodeResourceTopology> read = ParseNodeResourceTopology(ToJson(*seen.nrt));
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == *seen.nrt);
  }));
}

// As an API server (v1.37) returned one that was applied with integers: those stay, what was a
// quantity comes as a string.
TEST(ParseNodeResourceTopology, ReadsWhatAnApiServerReturns) {
  ASSERT_OK_AND_ASSIGN(const NodeResourceTopology nrt, ParseNodeResourceTopology(R"({
      "apiVersion":"topology.node.k8s.io/v1alpha2",
      "attributes":[{"name":"topologyManagerPolicy","value":"single-numa-node"}],
      "kind":"NodeResourceTopology",
      "metadata":{"creationTimestamp":"2026-11-29T15:00:43Z","generation":1,
        "managedFields":[{"apiVersion":"topology.node.k8s.io/v1alpha2","fieldsType":"FieldsV1",
          "fieldsV1":{"f:zones":{"k:{\"name\":\"node-0\"}":{".":{},"f:name":{}}}},
          "manager":"numa-agent","operation":"Apply","time":"2026-11-29T15:00:43Z"}],
        "name":"node-a","resourceVersion":"217","uid":"f1fc18de-8ac1-47cb-a575-0cffeadaff39"},
      "zones":[
        {"costs":[{"name":"node-0","value":10},{"name":"node-1","value":21}],"name":"node-0",
         "resources":[{"allocatable":3,"available":"3","capacity":4,"name":"cpu"}],"type":"Node"},
        {"costs":[{"name":"node-0","value":21},{"name":"node-1","value":10}],"name":"node-1",
         "resources":[{"allocatable":3,"available":"1","capacity":4,"name":"cpu"}],
         "type":"Node"}]})"));
  EXPECT_EQ(nrt.name, "node-a");
  EXPECT_THAT(nrt.attributes,
              ElementsAre(NrtAttribute{"topologyManagerPolicy", "single-numa-node"}));
  ASSERT_EQ(nrt.zones.size(), 2U);
  EXPECT_EQ(nrt.zones[1].type, "Node");
  EXPECT_THAT(nrt.zones[1].costs, ElementsAre(NrtCost{"node-0", 21}, NrtCost{"node-1", 10}));
  EXPECT_THAT(nrt.zones[1].resources, ElementsAre(NrtResource{"cpu", 4, 3, 1}));
}

TEST(ParseNodeResourceTopology, ReadsQuantitiesAndRoundsFractionsDown) {
  ASSERT_OK_AND_ASSIGN(const NodeResourceTopology nrt,
                       ParseNodeResourceTopology(WithZones(R"([{"name":"node-0","type":"Node",
      "resources":[{"name":"cpu","capacity":"4","allocatable":"3500m","available":"-500m"},
                   {"name":"memory","capacity":"1Ki","allocatable":"1e3","available":7}]}])")));
  EXPECT_THAT(nrt.zones[0].resources,
              ElementsAre(NrtResource{"cpu", 4, 3, -1}, NrtResource{"memory", 1024, 1000, 7}));
}

TEST(ParseNodeResourceTopology, KeepsAMissingAmountApartFromZero) {
  ASSERT_OK_AND_ASSIGN(const NodeResourceTopology nrt,
                       ParseNodeResourceTopology(WithZones(R"([{"name":"node-0","type":"Node",
          "resources":[{"name":"cpu","capacity":"4","available":null}]}])")));
  EXPECT_THAT(nrt.zones[0].resources,
              ElementsAre(NrtResource{"cpu", 4, std::nullopt, std::nullopt}));
  EXPECT_THAT(ToJson(nrt), HasSubstr(R"("resources":[{"name":"cpu","capacity":4}])"));
}

// Exporters write zones and resources as their maps happen to be.
TEST(ParseNodeResourceTopology, SortsWhatComesInAnyOrder) {
  ASSERT_OK_AND_ASSIGN(const NodeResourceTopology nrt, ParseNodeResourceTopology(WithZones(R"([
      {"name":"socket-0","type":"Socket"},
      {"name":"node-10","type":"Node"},
      {"name":"node-2","type":"Node",
       "costs":[{"name":"node-10","value":20},{"name":"node-2","value":10}],
       "resources":[{"name":"memory","capacity":1,"allocatable":1,"available":1},
                    {"name":"cpu","capacity":1,"allocatable":1,"available":1}]}])")));
  ASSERT_EQ(nrt.zones.size(), 3U);
  EXPECT_EQ(nrt.zones[0].name, "node-2");
  EXPECT_EQ(nrt.zones[1].name, "node-10");
  EXPECT_EQ(nrt.zones[2].type, "Socket");
  EXPECT_THAT(nrt.zones[0].costs, ElementsAre(NrtCost{"node-2", 10}, NrtCost{"node-10", 20}));
  EXPECT_THAT(nrt.zones[0].resources,
              ElementsAre(NrtResource{"cpu", 1, 1, 1}, NrtResource{"memory", 1, 1, 1}));
}

TEST(ParseNodeResourceTopology, KeepsThePoliciesAndTheAnnotationsOfItsOwnGroup) {
  ASSERT_OK_AND_ASSIGN(const NodeResourceTopology nrt,
                       ParseNodeResourceTopology(R"({"kind":"NodeResourceTopology",
      "metadata":{"annotations":{"topology.node.k8s.io/fingerprint":"pfp0v001ef46db3751d8e999",
                                 "k8stopoawareschedwg/rte-update":"periodic"}},
      "topologyPolicies":["SingleNUMANodePodLevel"],"zones":[]})"));
  EXPECT_THAT(nrt.annotations, ElementsAre(NrtAttribute{"topology.node.k8s.io/fingerprint",
                                                        "pfp0v001ef46db3751d8e999"}));
  EXPECT_THAT(nrt.topology_policies, ElementsAre("SingleNUMANodePodLevel"));
  EXPECT_THAT(nrt.zones, IsEmpty());
}

TEST(ParseNodeResourceTopology, NamesTheFieldThatCannotBe) {
  EXPECT_THAT(ParseNodeResourceTopology(WithZones(R"([{"name":"node-0","type":"Node",
                  "resources":[{"name":"cpu","capacity":"four"}]}])")),
              StatusIs(kInvalid, HasSubstr("zones[0].resources[0].capacity: ")));
  EXPECT_THAT(ParseNodeResourceTopology(WithZones(R"([{"name":"node-0","type":"Node",
                  "resources":[{"name":"cpu","available":1.5}]}])")),
              StatusIs(kInvalid, HasSubstr("zones[0].resources[0].available: ")));
  EXPECT_THAT(ParseNodeResourceTopology(WithZones(R"([{"name":"node-0","type":"Node",
                  "resources":[{"name":"cpu","available":"9Ei"}]}])")),
              StatusIs(kInvalid, HasSubstr("zones[0].resources[0].available: ")));
  EXPECT_THAT(ParseNodeResourceTopology(WithZones(R"({"name":"node-0"})")),
              StatusIs(kInvalid, HasSubstr("zones: is no list")));
  EXPECT_THAT(ParseNodeResourceTopology(R"({"kind":"NodePlacement"})"),
              StatusIs(kInvalid, HasSubstr("not NodeResourceTopology")));
  EXPECT_THAT(ParseNodeResourceTopology("{"), StatusIs(kInvalid, HasSubstr("is no JSON")));
}

}  // namespace
}  // namespace placement
