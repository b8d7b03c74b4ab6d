#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "test/support/status.h"

namespace base {
namespace {

TEST(Time, IsWrittenInUtcWithMilliseconds) {
  EXPECT_EQ(FormatTime(Time(std::chrono::milliseconds(1'700'000'000'123))),
            "2023-11-14T22:13:20.123Z");
}

TEST(Time, ReadsFractionsAndOffsets) {
  EXPECT_EQ(ParseTime("2023-11-14T22:13:20Z").value(),
            ParseTime("2023-11-14T22:13:20.000Z").value());
  EXPECT_EQ(ParseTime("2023-11-14T22:13:20.1Z").value(),
            ParseTime("2023-11-14T22:13:20.100Z").value());
  EXPECT_EQ(FormatTime(ParseTime("2023-11-14T22:13:20.123456789+02:30").value()),
            "2023-11-14T19:43:20.123Z");
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2023-11-14", "2023-02-30T00:00:00Z", "2023-11-14T22:13:20", "2023-11-14T25:13:20Z",
        "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20+1:30", "2023-11-14T22:13:20ZZ",
        " 023-11-14T22:13:20Z", "2023-+1-14T22:13:20Z", "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+00:-1"}) {
    EXPECT_THAT(ParseTime(text), test::StatusIs(absl::StatusCode::kInvalidArgument,
                                                testing::HasSubstr("is no RFC 3339 time")))
        << text;
  }
}

TEST(SystemClock, WaitsNoLongerThanUntilItIsStopped) {
  SystemClock clock;
  std::stop_source stop;
  EXPECT_TRUE(clock.Wait(std::chrono::milliseconds(1), stop.get_token()));
  std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_FALSE(clock.Wait(std::chrono::hours(1), stop.get_token()));
  EXPECT_FALSE(clock.Wait(std::chrono::hours(1), stop.get_token()));
}

}  // namespace
}  // namespace base
