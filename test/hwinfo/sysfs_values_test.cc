#include "hwinfo/sysfs_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace hwinfo {
namespace {

using absl::StatusCode;
using base::CpuSet;
using testing::HasSubstr;

TEST(SysfsValues, MasksAreGroupsOf32CpusWithTheHighestFirst) {
  EXPECT_EQ(ParseCpuMask("3\n").value(), CpuSet({0, 1}));
  EXPECT_EQ(ParseCpuMask("0000,00000001,80000000").value(), CpuSet({31, 32}));
  EXPECT_EQ(ParseCpuMask("00000000").value(), CpuSet());
  std::string mask = "1";
  for (int group = 0; group < 64; ++group) mask += ",00000000";
  EXPECT_EQ(ParseCpuMask(mask).value(), CpuSet({2048}));
}

TEST(SysfsValues, WhatIsNoMaskIsRefused) {
  for (const char* text : {"", ",", "1,", ",1", "x", "0x1", "-1", "123456789", "1 1"}) {
    EXPECT_THAT(ParseCpuMask(text), test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("mask")))
        << text;
  }
  std::string beyond = "1";
  for (int group = 0; group < 2048; ++group) beyond += ",00000000";
  EXPECT_THAT(ParseCpuMask(beyond),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("65536")));
}

TEST(SysfsValues, NumbersAreWholeTexts) {
  EXPECT_EQ(ParseInteger(" -1\n"), -1);
  EXPECT_EQ(ParseInteger("4294967295"), 4294967295);
  for (const char* text : {"", " ", "x", "1x", "0x10", "1 2", "99999999999999999999"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
  }
}

TEST(SysfsValues, OldKernelsHaveMasksOnly) {
  test::TempTree tree;
  tree.Put("cpumap", "0000000f\n").Put("broken", "0-,3");
  const base::FileTree root = tree.Open();
  EXPECT_EQ(ReadCpuListOrMask(root, "cpulist", "cpumap").value(), CpuSet({0, 1, 2, 3}));
  EXPECT_EQ(ReadCpuListOrMask(root, "broken", "cpumap").value(), CpuSet({0, 1, 2, 3}));
  EXPECT_THAT(ReadCpuListOrMask(root, "broken", "absent"),
              test::StatusIs(StatusCode::kInvalidArgument, HasSubstr("/broken: \"\" is no id")));
}

TEST(SysfsValues, ABlankListIsTheEmptySetAndNotCpu0) {
  test::TempTree tree;
  tree.Put("cpulist", "\n");
  EXPECT_EQ(ReadCpuList(tree.Open(), "cpulist").value(), CpuSet());
}

TEST(SysfsValues, NamesWithNumbersAreReadToTheEnd) {
  EXPECT_EQ(NumberAfter("cpu", "cpu12"), 12);
  for (const char* name : {"cpu", "cpufreq", "cpu-1", "cpu1x", "node1", "cpu65536"}) {
    EXPECT_EQ(NumberAfter("cpu", name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace hwinfo
