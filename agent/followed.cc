#include "agent/followed.h"

#include <spdlog/spdlog.h>

#include "base/text_layout.h"

namespace agent {

void LogSynced(const FollowedName& name, std::size_t count) {
  spdlog::info("event={0}{1}s_watch state=synced {1}s={2}", name.prefix, name.noun, count);
}

void LogNotUnderstood(const FollowedName& name, const kube::Object& object,
                      const absl::Status& status) {
  const std::string& space = object.namespace_name;
  spdlog::warn("event={0}{1}_not_understood {1}={2}{3} error={4}", name.prefix, name.noun,
               space.empty() ? "" : space + "/", object.name,
               base::OneLine(std::string(status.message())));
}

void LogLost(const FollowedName& name, const kube::WatchEvent& event, bool refused) {
  const auto level = name.is_expected ? spdlog::level::warn : spdlog::level::info;
  spdlog::log(level, "event={}{}s_watch state={} error={}", name.prefix, name.noun,
              refused ? "refused" : "lost", base::OneLine(event.reason));
}

}  // namespace agent
