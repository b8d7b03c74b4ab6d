#include "agent/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "test/fakes/clock.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace agent {
namespace {

using testing::HasSubstr;

class HttpTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = ServeHttp({.address = "127.0.0.1", .port = 0, .certificate = "", .key = ""},
                            metrics_, health_, clock_);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  httplib::Result Get(const std::string& path) {
    return httplib::Client("127.0.0.1", server_->port()).Get(path);
  }

  test::FakeClock clock_;
  Metrics metrics_;
  Health health_{clock_.Steady()};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTest, GivesMetrics) {
  const httplib::Result answer = Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr("plumbline_build_info"));
}

TEST_F(HttpTest, IsHealthyUntilTheLoopIsStuck) {
  EXPECT_EQ(Get("/healthz")->status, 200);
  clock_.Advance(Health::kStuck);
  EXPECT_EQ(Get("/healthz")->status, 503);
  health_.Stepped(clock_.Steady());
  EXPECT_EQ(Get("/healthz")->status, 200);
}

TEST_F(HttpTest, IsReadyOnceSomethingWasPublished) {
  EXPECT_EQ(Get("/readyz")->status, 503);
  health_.Published();
  EXPECT_EQ(Get("/readyz")->status, 200);
}

TEST_F(HttpTest, HasNothingElse) { EXPECT_EQ(Get("/")->status, 404); }

TEST_F(HttpTest, SaysWhichAddressIsNotToBeHad) {
  EXPECT_THAT(
      ServeHttp({.address = "127.0.0.1", .port = server_->port(), .certificate = "", .key = ""},
                metrics_, health_, clock_)
          .status(),
      test::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("127.0.0.1")));
}

TEST_F(HttpTest, RefusesACertificateThatIsNone) {
  EXPECT_THAT(
      ServeHttp({.address = "127.0.0.1", .port = 0, .certificate = "/none.pem", .key = "/none.pem"},
                metrics_, health_, clock_)
          .status(),
      test::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/none.pem")));
}

}  // namespace
}  // namespace agent
