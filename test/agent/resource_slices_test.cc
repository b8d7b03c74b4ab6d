// Run under ThreadSanitizer as well.
#include "agent/resource_slices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "hwinfo/pci_address.h"
#include "test/agent/following.h"
#include "test/kube/watch_lines.h"
#include "test/support/files.h"
#include "test/support/status.h"

namespace agent {
namespace {

using hwinfo::DraAttributes;
using test::Chunked;
using test::EventLine;
using test::InitialEndLine;
using test::Reply;
using test::StatusIs;
using test::StatusReply;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

DraAttributes AttributesIn(const std::string& attributes) {
  const absl::StatusOr<ResourceSlice> slice =
      ReadResourceSlice({.json = R"({"spec": {"driver": "d", "pool": {"name": "p"},
                   "devices": [{"name": "x", "attributes": )" +
                                 attributes + "}]}}"});
  EXPECT_OK(slice);
  return slice.ok() ? slice->devices.at("x") : DraAttributes();
}

TEST(ReadResourceSlice, TakesTheStandardAttributes) {
  ASSERT_OK_AND_ASSIGN(const ResourceSlice slice, ReadResourceSlice({.json = R"({"spec": {
      "driver": "dra.net", "nodeName": "gpu-7", "pool": {"name": "gpu-7", "generation": 3,
      "resourceSliceCount": 1}, "devices": [
        {"name": "eth1", "attributes": {
          "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
          "resource.kubernetes.io/pcieRoot": {"string": "pci0000:3a"},
          "resource.kubernetes.io/numaNode": {"int": 1}}},
        {"name": "lo", "attributes": {"dra.net/virtual": {"bool": true}}}]}})"}));
  EXPECT_EQ(slice.driver + " " + slice.pool, "dra.net gpu-7");
  EXPECT_EQ(slice.generation, 3);
  EXPECT_THAT(
      slice.devices,
      ElementsAre(Pair("eth1", DraAttributes{.address = hwinfo::ParsePciAddress("0000:3b:00.0"),
                                             .numa_node = 1}),
                  Pair("lo", DraAttributes())));
}

TEST(ReadResourceSlice, UnderstandsOneThatWasRecorded) {
  ASSERT_OK_AND_ASSIGN(
      const ResourceSlice slice,
      ReadResourceSlice({.json = test::Slurp("test/fuzz/seeds/resource_slice_fuzz/v1.json")}));
  EXPECT_EQ(slice.driver + " " + slice.pool, "dra.example.com two-socket");
  DraAttributes nic;
  nic.address = hwinfo::ParsePciAddress("0000:85:00.0");
  nic.numa_node = 1;
  nic.gpu_uuid = "GPU-1";
  DraAttributes other;
  other.address = hwinfo::ParsePciAddress("0000:15:00.0");
  EXPECT_THAT(slice.devices, ElementsAre(Pair("nic", nic), Pair("other", other)));
}

TEST(ReadResourceSlice, TakesWhatNvidiasDriverPublishes) {
  const DraAttributes gpu = AttributesIn(
      R"({"type": {"string": "gpu"}, "uuid": {"string": "GPU-8a7b"},
          "pcieBusID": {"string": "0000:1B:00.0"}, "driverVersion": {"version": "580.1.0"}})");
  EXPECT_EQ(gpu.gpu_uuid, "GPU-8a7b");
  EXPECT_EQ(gpu.address, hwinfo::ParsePciAddress("0000:1b:00.0"));
  const DraAttributes partition = AttributesIn(
      R"({"type": {"string": "mig"}, "uuid": {"string": "MIG-1f0c"},
          "parentUUID": {"string": "GPU-8a7b"}, "profile": {"string": "1g.5gb"}})");
  EXPECT_EQ(partition.gpu_uuid, "GPU-8a7b");
  EXPECT_EQ(partition.address, std::nullopt);
}

TEST(ReadResourceSlice, TakesADriversOwnNamesAfterTheStandardOnes) {
  const DraAttributes device = AttributesIn(
      R"({"sriov.example.com/pciAddress": {"string": "0000:99:00.0"},
          "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
          "example.com/numaNode": {"int": 0},
          "resource.kubernetes.io/numaNode": {"ints": [1, 0]}})");
  EXPECT_EQ(device.address, hwinfo::ParsePciAddress("0000:3b:00.0"));
  EXPECT_EQ(device.numa_node, 1);
}

TEST(ReadResourceSlice, TakesNoNumaNodeThatCannotBe) {
  EXPECT_EQ(AttributesIn(R"({"numaNode": {"int": -1}})").numa_node, std::nullopt);
  EXPECT_EQ(AttributesIn(R"({"numaNode": {"ints": []}})").numa_node, std::nullopt);
  EXPECT_EQ(AttributesIn(R"({"pciAddress": {"string": "nowhere"}})").address, std::nullopt);
}

TEST(ReadResourceSlice, ReadsTheOldestForm) {
  ASSERT_OK_AND_ASSIGN(const ResourceSlice slice, ReadResourceSlice({.json = R"({"spec": {
      "driver": "d", "pool": {"name": "p"}, "devices": [{"name": "x",
        "basic": {"attributes": {"numaNode": {"int": 1}}}}]}})"}));
  EXPECT_EQ(slice.devices.at("x").numa_node, 1);
}

TEST(ReadResourceSlice, NamesTheFieldThatMakesNoSense) {
  EXPECT_THAT(ReadResourceSlice({.json = R"({"spec": {"pool": {"generation": "x"}}})"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.pool.generation")));
}

std::string SliceJson(const std::string& name, int generation, int node) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","uid":"uid-{}","resourceVersion":"{}"}},"spec":{{"driver":"dra.net",)"
      R"("pool":{{"name":"gpu-7","generation":{}}},"devices":[{{"name":"eth1","attributes":)"
      R"({{"numaNode":{{"int":{}}}}}}}]}}}})",
      name, name, 10 * generation + node, generation, node);
}

class ResourceSlicesTest : public test::FollowingTest<ResourceSlices> {
 protected:
  // Of the one device that there is.
  static int NodeOf(const ResourceSlices::Devices& devices) {
    const auto found = (*devices)->find({.driver = "dra.net", .pool = "gpu-7", .name = "eth1"});
    return found == (*devices)->end() ? -1 : found->second.numa_node.value_or(-1);
  }
};

TEST_F(ResourceSlicesTest, TellOfTheDevicesAndTheirChanges) {
  server_.Then(Chunked({EventLine("ADDED", SliceJson("a", 1, 0)), InitialEndLine("1"),
                        EventLine("MODIFIED", SliceJson("a", 1, 1))},
                       kHang));
  Start();
  const auto seen = AwaitChanges(2);
  EXPECT_EQ(NodeOf(seen[0]), 0);
  EXPECT_EQ(NodeOf(seen[1]), 1);
  EXPECT_THAT(server_.requests()[0].target,
              StartsWith("/apis/resource.k8s.io/v1/resourceslices?fieldSelector="
                         "spec.nodeName%3Dgpu-7&"));
}

TEST_F(ResourceSlicesTest, CountTheNewestGenerationOfAPoolAlone) {
  server_.Then(Chunked({EventLine("ADDED", SliceJson("a", 2, 1)),
                        EventLine("ADDED", SliceJson("b", 1, 0)), InitialEndLine("1")},
                       kHang));
  Start();
  EXPECT_EQ(NodeOf(AwaitChanges(1)[0]), 1);
}

TEST_F(ResourceSlicesTest, AreReadInTheVersionThatIsServed) {
  server_.Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Chunked({EventLine("ADDED", SliceJson("a", 1, 1)), InitialEndLine("1")}, kHang));
  Start();
  EXPECT_EQ(NodeOf(AwaitChanges(1)[0]), 1);
  EXPECT_THAT(server_.requests()[2].target, HasSubstr("/v1beta1/resourceslices?"));
}

TEST_F(ResourceSlicesTest, AreNotKnownWhereThePermissionOrTheKindIsMissing) {
  server_
      .Then(StatusReply(403, "Forbidden",
                        R"(User \"u\" cannot watch resource \"resourceslices\" in API group )"
                        R"(\"resource.k8s.io\" at)"))
      .Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Reply(404, "404 page not found"))
      .Then(Chunked({}, kHang));
  Start();
  const auto seen = AwaitChanges(2);
  EXPECT_THAT(*seen[0],
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("missing permission: watch resourceslices.resource.k8s.io")));
  EXPECT_THAT(*seen[1], StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("404")));
  server_.AwaitRequests(5);
  EXPECT_THAT(clock_.pauses(), ElementsAre(std::chrono::minutes(10), std::chrono::minutes(10)));
}

}  // namespace
}  // namespace agent
