#include "agent/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/text_layout.h"
#include "test/agent/example_node.h"
#include "test/support/files.h"

namespace agent {
namespace {

using test::Lines;
using testing::HasSubstr;
using testing::Not;

// Compares with test/agent/golden/NAME; UPDATE_GOLDEN=1 writes it anew.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = "test/agent/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, test::Slurp(path)) << "UPDATE_GOLDEN=1 writes " << path << " anew";
}

void ExpectWithin(const std::string& text, int width) {
  for (const std::string& line : Lines(text)) EXPECT_LE(base::Width(line), width) << line;
}

std::string Draw(const hwinfo::Topology& topology, const placement::Observation& observation,
                 int width = 80) {
  PictureOptions options;
  options.width = width;
  return Picture(topology, observation, options);
}

TEST(Picture, OfANodeWithPods) {
  const std::string text = Draw(test::ExampleTopology(), test::ExampleObservation());
  ExpectGolden("pods.txt", text);
  ExpectWithin(text, 80);
}

TEST(Picture, InAsciiHasNoOtherBytes) {
  PictureOptions options;
  options.ascii = true;
  const std::string text = Picture(test::ExampleTopology(), test::ExampleObservation(), options);
  ExpectGolden("pods.ascii.txt", text);
  EXPECT_TRUE(
      std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST(Picture, InColour) {
  PictureOptions options;
  options.color = true;
  ExpectGolden("pods.color.txt",
               Picture(test::ExampleTopology(), test::ExampleObservation(), options));
}

TEST(Picture, ColourChangesNoCharacter) {
  PictureOptions options;
  options.color = true;
  std::string text = Picture(test::ExampleTopology(), test::ExampleObservation(), options);
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b', at)) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  EXPECT_EQ(text, Draw(test::ExampleTopology(), test::ExampleObservation()));
}

TEST(Picture, FitsNarrowAndWideTerminals) {
  const std::string narrow = Draw(test::ExampleTopology(), test::ExampleObservation(), 60);
  ExpectGolden("pods.60.txt", narrow);
  for (const int width : {60, 61, 72, 100, 132, 200}) {
    ExpectWithin(Draw(test::ExampleTopology(), test::ExampleObservation(), width), width);
  }
}

TEST(Picture, WithoutAKubeletShowsTheHardwareAndTheNote) {
  PictureOptions options;
  options.hardware_only = true;
  options.notes = {"Hardware only, no kubelet at /var/lib/kubelet/pod-resources/kubelet.sock."};
  const hwinfo::Topology topology = test::ExampleTopology();
  placement::Observation observation = test::HardwareOnly(topology);
  observation.diagnostics = {{"SocketMissing", "", "no socket"}};
  const std::string text = Picture(topology, observation, options);
  ExpectGolden("hardware.txt", text);
  EXPECT_THAT(text, HasSubstr("Hardware only"));
  EXPECT_THAT(text, Not(HasSubstr("0 pods")));
  EXPECT_THAT(text, Not(HasSubstr("SocketMissing")));
}

TEST(Picture, OfManyNodesHasOneLineForEachQuietOne) {
  const hwinfo::Topology topology = test::ManyNodes(64);
  const std::string text = Draw(topology, test::HardwareOnly(topology));
  EXPECT_LE(Lines(text).size(), 72U) << text;
  ExpectWithin(text, 80);
}

TEST(Picture, FoldsEmptyNodesOfAGpuIntoOneLine) {
  hwinfo::Topology topology = test::ManyNodes(34);
  for (std::size_t i = 2; i < topology.numa_nodes.size(); ++i) {
    hwinfo::NumaNode& node = topology.numa_nodes[i];
    node.kind = hwinfo::NumaNodeKind::kEmpty;
    node.cpus = {};
    node.socket = -1;
    node.memory_bytes = 0;
  }
  const std::string text = Draw(topology, test::HardwareOnly(topology));
  EXPECT_THAT(text, HasSubstr("32 nodes with neither CPUs nor memory · 2-33"));
  EXPECT_LE(Lines(text).size(), 12U) << text;
}

placement::Observation WithPods(int count) {
  placement::Observation observation = test::ExampleObservation();
  const placement::PlacedPod small = observation.placement.pods[0];
  for (int i = 0; i < count; ++i) {
    observation.placement.pods.push_back(small);
    observation.placement.pods.back().name = "small-" + std::to_string(i);
  }
  return observation;
}

TEST(Picture, FoldsManyAlignedPodsAndKeepsTheOthers) {
  const std::string text = Draw(test::ExampleTopology(), WithPods(110));
  EXPECT_THAT(text, HasSubstr("and 111 pods aligned without devices: 444 CPUs"));
  EXPECT_THAT(text, HasSubstr("ml/llm-1"));
  EXPECT_THAT(text, Not(HasSubstr("small-7")));
  EXPECT_LE(Lines(text).size(), 80U);
}

TEST(Picture, FoldsLongDeviceListsAndKeepsWhatIsHeld) {
  hwinfo::Topology topology = test::ExampleTopology();
  const hwinfo::PciDevice nic = topology.devices[2];
  for (int i = 0; i < 40; ++i) {
    topology.devices.push_back(nic);
    topology.devices.back().address.bus = static_cast<std::uint8_t>(0x20 + i);
  }
  placement::Observation observation = test::ExampleObservation();
  placement::PlacedDevice held = observation.placement.devices[0];
  held.resource = "rdma/hca";
  held.id = "last";
  held.pci_address = "0000:47:00.0";
  observation.placement.devices.push_back(held);
  observation.placement.pods[1].containers[0].devices.push_back({"rdma/hca", {"last"}});
  const std::string text = Draw(topology, observation);
  EXPECT_THAT(text, HasSubstr("41 NICs"));
  EXPECT_THAT(text, HasSubstr("and 25 more"));
  EXPECT_THAT(text, HasSubstr("47:00.0"));
}

TEST(Picture, ShowsAPartitionedGpuWithHowMuchOfItIsHeld) {
  placement::Observation observation = test::ExampleObservation();
  placement::PlacedDevice slice = observation.placement.devices[3];
  slice.id = "MIG-1";
  observation.placement.devices.push_back(slice);
  observation.placement.pods[0].containers[0].devices = {{"nvidia.com/gpu", {"MIG-1"}}};
  EXPECT_THAT(Draw(test::ExampleTopology(), observation), HasSubstr("1 of 2 held ml/batch-0"));
}

TEST(Picture, PutsWhatThePluginAndTheKernelSayDifferentlyBesideTheDevice) {
  placement::Observation observation = test::ExampleObservation();
  observation.placement.devices[3].numa_nodes = {0};
  EXPECT_THAT(Draw(test::ExampleTopology(), observation),
              HasSubstr("free (its plugin says node 0)"));
}

TEST(Picture, ShowsVirtualFunctionsOnOneLineBelowTheirParent) {
  hwinfo::Topology topology = test::ExampleTopology();
  const hwinfo::PciDevice parent = topology.devices[2];
  for (int function = 1; function <= 7; ++function) {
    hwinfo::PciDevice device = parent;
    device.address.function = static_cast<std::uint8_t>(function);
    device.physical_function = parent.address;
    topology.devices.push_back(device);
  }
  EXPECT_THAT(Draw(topology, test::ExampleObservation()), HasSubstr("with 7 virtual functions"));
}

TEST(Picture, LetsNoNameFromOutsideMoveTheCursor) {
  placement::Observation observation = test::ExampleObservation();
  observation.placement.pods[0].name = "evil\x1b[2J";
  observation.placement.pods[0].message = "\x1b]0;title\x07";
  observation.placement.pods[0].alignment = placement::Alignment::kDrifted;
  observation.diagnostics.push_back({"Code", "\x1b[31m", "\rgone"});
  hwinfo::Topology topology = test::ExampleTopology();
  topology.devices[0].model = "\x1b[1mH100";
  topology.devices[0].names = {"\n"};
  EXPECT_THAT(Draw(topology, observation), Not(HasSubstr("\x1b")));
}

TEST(Picture, SaysWhatAConditionSumsUpOnlyOnce) {
  placement::Observation observation;
  observation.placement.conditions = {
      {"KernelAgrees", "False", "Drifted", "1 of 2 pods does not run where it was put."},
      {"StateKnown", "False", "FilesMissing", "Not read: cpu_manager_state."}};
  EXPECT_THAT(Picture({}, observation, {}), HasSubstr("FilesMissing"));
  observation.diagnostics = {{"KernelFactsMissing", "", "no cgroup"},
                             {"KubeletFileAbsent", "x", "x/cpu_manager_state does not exist"}};
  const std::string text = Picture({}, observation, {});
  EXPECT_THAT(text, HasSubstr("x/cpu_manager_state does not exist"));
  EXPECT_THAT(text, Not(HasSubstr("FilesMissing")));
  EXPECT_THAT(text, HasSubstr("Drifted"));
}

TEST(Picture, DoesNotCountFreeHugePagesThatNobodyCounted) {
  hwinfo::Topology topology = test::ExampleTopology();
  topology.numa_nodes[0].huge_pages = {{.page_bytes = 1 << 30, .total = 16, .free = -1}};
  const std::string text = Draw(topology, test::HardwareOnly(topology));
  EXPECT_THAT(text, HasSubstr("1Gi pages  16 · 16 GiB"));
  EXPECT_THAT(text, Not(HasSubstr("-1 of")));
}

TEST(Picture, AddsUpAbsurdAmounts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  hwinfo::Topology topology = test::ExampleTopology();
  for (hwinfo::NumaNode& node : topology.numa_nodes) {
    node.memory_bytes = kMost;
    node.huge_pages = {{.page_bytes = 1 << 30, .total = kMost, .free = 0}};
  }
  placement::Observation observation = WithPods(30);
  for (placement::PlacedPod& pod : observation.placement.pods) {
    const placement::PlacedMemory block = {.type = "memory", .bytes = kMost, .numa_nodes = {0}};
    pod.containers[0].memory = {block, block};
  }
  EXPECT_THAT(Draw(topology, observation), HasSubstr("8 EiB"));
}

TEST(Picture, OfNothingKnownIsStillAPicture) {
  EXPECT_THAT(Draw(hwinfo::Topology{}, placement::Observation{}), HasSubstr("0 NUMA nodes"));
}

}  // namespace
}  // namespace agent
