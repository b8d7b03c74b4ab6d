#include "base/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace base {
namespace {

TEST(Quantity, ReadsEverySuffixOfKubernetes) {
  EXPECT_EQ(ParseQuantity("0").value(), 0);
  EXPECT_EQ(ParseQuantity("64Gi").value(), std::int64_t{64} << 30);
  EXPECT_EQ(ParseQuantity("1.5Gi").value(), std::int64_t{3} << 29);
  EXPECT_EQ(ParseQuantity("993Mi").value(), std::int64_t{993} << 20);
  EXPECT_EQ(ParseQuantity("2k").value(), 2000);
  EXPECT_EQ(ParseQuantity("1e3").value(), 1000);
  EXPECT_EQ(ParseQuantity("1E").value(), 1'000'000'000'000'000'000);
  EXPECT_EQ(ParseQuantity("-5").value(), -5);
  EXPECT_EQ(ParseMilliQuantity("1").value(), 1000);
  EXPECT_EQ(ParseMilliQuantity("500m").value(), 500);
  EXPECT_EQ(ParseMilliQuantity("0.1").value(), 100);
}

TEST(Quantity, RoundsFractionsUp) {
  EXPECT_EQ(ParseQuantity("100m").value(), 1);
  EXPECT_EQ(ParseQuantity("1001m").value(), 2);
  EXPECT_EQ(ParseMilliQuantity("1n").value(), 1);
  EXPECT_EQ(ParseMilliQuantity("0.0001").value(), 1);
  EXPECT_EQ(ParseQuantity("1e-400").value(), 1);
  EXPECT_EQ(ParseQuantity("0e-400").value(), 0);
}

TEST(Quantity, TakesAnyNumberOfDigitsBehindThePoint) {
  EXPECT_EQ(ParseQuantity("0.3333333333333333333333333333333333333333").value(), 1);
  EXPECT_EQ(ParseQuantity("1.0000000000000000000000000000000000000000").value(), 1);
  EXPECT_EQ(ParseQuantity("1.0000000000000000000000000000000000000001").value(), 2);
  EXPECT_EQ(ParseQuantity("0.5000000000000000000000000000000000000000Ei").value(),
            std::int64_t{1} << 59);
  EXPECT_EQ(ParseMilliQuantity("0.3333333333333333333333333333333333333333").value(), 334);
}

TEST(Quantity, RoundsFractionsDownWhereAsked) {
  EXPECT_EQ(ParseQuantity("1500m", Rounding::kDown).value(), 1);
  EXPECT_EQ(ParseQuantity("0.9999", Rounding::kDown).value(), 0);
  EXPECT_EQ(ParseQuantity("-500m", Rounding::kDown).value(), -1);
  EXPECT_EQ(ParseQuantity("3", Rounding::kDown).value(), 3);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"", "Gi", "1gi", "1 Gi", "0x10", "1e", "1e+", "1e+-3", ".", "--1", "1.2.3"}) {
    EXPECT_THAT(ParseQuantity(text),
                test::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr(text)));
  }
}

TEST(Quantity, RefusesWhatDoesNotFitInsteadOfWrapping) {
  for (const char* text :
       {"8Ei", "9223372036854775808", "1e90", "1e400", "99999999999999999999999999999"}) {
    EXPECT_THAT(ParseQuantity(text),
                test::StatusIs(absl::StatusCode::kOutOfRange, testing::HasSubstr(text)));
  }
  EXPECT_EQ(ParseQuantity("9223372036854775807").value(), 9223372036854775807);
}

TEST(Quantity, WritesBytesWithTheLargestSuffixThatLeavesAWholeNumber) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(1000), "1000");
  EXPECT_EQ(FormatBytes(std::int64_t{64} << 30), "64Gi");
  EXPECT_EQ(FormatBytes(std::int64_t{1025} << 20), "1025Mi");
  EXPECT_EQ(HugePagesResource(std::int64_t{2} << 20), "hugepages-2Mi");
}

}  // namespace
}  // namespace base
