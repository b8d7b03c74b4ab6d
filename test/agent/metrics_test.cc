#include "agent/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/health.h"

namespace agent {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountWhatWasAskedAndPublished) {
  Metrics metrics;
  metrics.Asked(absl::OkStatus(), 0.002);
  metrics.Asked(absl::ResourceExhaustedError("rejected by rate limit"), 0.002);
  metrics.Published(absl::UnavailableError("no route to host"), 1);
  metrics.Wrote("nodeplacement", "unchanged");
  metrics.LostHints();
  metrics.LostWatch("nodes", absl::StatusCode::kOutOfRange);
  metrics.GoodAt(base::Time(std::chrono::milliseconds(1'500)));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("plumbline_observation_duration_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_podresources_errors_total{cause=\"rate_limited\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_publish_failures_total 1\n"));
  EXPECT_THAT(
      text, HasSubstr("plumbline_writes_total{object=\"nodeplacement\",result=\"unchanged\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_hints_lost_total 1\n"));
  EXPECT_THAT(text,
              HasSubstr("plumbline_watches_lost_total{cause=\"expired\",object=\"nodes\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_last_good_observation_timestamp_seconds 1.5\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_build_info{version=\""));
}

TEST(Metrics, TellWhatTheLastObservationSays) {
  placement::Observation observation;
  observation.placement.summary.aligned = 3;
  observation.nrt.emplace();
  placement::NrtZone zone;
  zone.name = "node-8";
  zone.resources = {{.name = "cpu", .capacity = 48, .allocatable = 46, .available = 44}};
  observation.nrt->zones = {zone};
  Metrics metrics;
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("plumbline_pods"))) << "nothing is known";
  metrics.Observed(std::make_shared<const placement::Observation>(observation));
  metrics.Holds({{"Settled", "False", "KubeletStarting", ""}});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("plumbline_pods{alignment=\"aligned\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_pods{alignment=\"drifted\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("plumbline_numa_node_allocatable{numa_node=\"8\",resource=\"cpu\"} 46\n"));
  EXPECT_THAT(text,
              HasSubstr("plumbline_numa_node_available{numa_node=\"8\",resource=\"cpu\"} 44\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "plumbline_condition{type=\"Settled\",status=\"False\",reason=\"KubeletStarting\"} 1\n"));
}

TEST(Health, IsAliveAsLongAsTheLoopSteps) {
  constexpr base::Instant kStart{std::chrono::hours(1)};
  Health health(kStart);
  EXPECT_TRUE(health.IsAlive(kStart + std::chrono::seconds(59)));
  EXPECT_FALSE(health.IsAlive(kStart + std::chrono::seconds(60)));
  health.Stepped(kStart + std::chrono::seconds(60));
  EXPECT_TRUE(health.IsAlive(kStart + std::chrono::seconds(60)));
}

TEST(Health, IsReadyOnceSomethingWasPublished) {
  Health health{base::Instant()};
  EXPECT_FALSE(health.IsReady());
  health.Published();
  EXPECT_TRUE(health.IsReady());
}

}  // namespace
}  // namespace agent
