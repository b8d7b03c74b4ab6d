#include "cli/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/text_layout.h"
#include "cli/recording.h"
#include "cli/replay.h"
#include "placement/json_writer.h"

namespace cli {
namespace {

struct Answer {
  int recordings = 0;
  std::set<std::string> versions;  // of their kubelets
  Agreement agreement;
};

// One thing that may agree.
struct Count {
  const char* word;
  const char* key;
  int Agreement::*count;
};
constexpr std::array kCounts = {
    Count{"verdicts", "verdicts", &Agreement::verdicts},
    Count{"reasons", "reasons", &Agreement::reasons},
    Count{"affinities", "affinities", &Agreement::affinities},
    Count{"CPU sets", "cpuSets", &Agreement::cpus},
    Count{"memory", "memory", &Agreement::memory},
    Count{"devices per NUMA node", "devices", &Agreement::devices},
};

// A running kubelet tells no hints: its affinities are not compared.
bool IsTold(const Count& count, bool live) {
  return !live || count.count != &Agreement::affinities;
}

absl::StatusOr<Answer> ReplayFile(const std::string& path, bool live) {
  Answer answer;
  RETURN_IF_ERROR(ForEachLine(path, [&](int number, const std::string& line) -> absl::Status {
    const absl::StatusOr<Recording> recording = ParseRecording(line);
    absl::Status status = recording.status();
    if (status.ok()) status = Replay(*recording, {.live = live}, answer.agreement);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{} line {}: {}", path, number, std::string(status.message())));
    }
    ++answer.recordings;
    answer.versions.insert(recording->node.kubelet.version);
    return absl::OkStatus();
  }));
  if (answer.recordings == 0) {
    return absl::InvalidArgumentError(fmt::format("{} holds no recording", path));
  }
  if (answer.agreement.events == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} holds no admission{}", path, live ? " of a running kubelet" : ""));
  }
  return answer;
}

std::string ToText(const Answer& answer, const SimulateOptions& options) {
  const Agreement& agreement = answer.agreement;
  base::Canvas canvas(options.look.width, options.look.color,
                      options.look.ascii ? base::AsciiGlyphs() : base::UnicodeGlyphs());
  const auto row = [&](const std::string& word, const std::string& text, base::Style style) {
    canvas.Text({{base::Pad(word, 24), base::Style::kPlain}, {text, style}});
  };
  row("recordings",
      fmt::format("{} (kubelet {})", answer.recordings, fmt::join(answer.versions, ", ")),
      base::Style::kPlain);
  row("events", fmt::format("{}", agreement.events), base::Style::kPlain);
  for (const Count& count : kCounts) {
    if (!IsTold(count, options.live)) {
      row(count.word, "not told by a running kubelet", base::Style::kDim);
      continue;
    }
    const int agreed = agreement.*count.count;
    row(count.word, fmt::format("{} of {}", agreed, agreement.events),
        agreed == agreement.events ? base::Style::kGood : base::Style::kBad);
  }
  if (agreement.left_out > 0) {
    row("not compared", fmt::format("{}, after a verdict that differs", agreement.left_out),
        base::Style::kNote);
  }
  if (agreement.untold > 0) {
    row("not recorded live", fmt::format("{}", agreement.untold), base::Style::kNote);
  }
  const int differ = static_cast<int>(agreement.differences.size());
  if (differ > options.show) {
    row("differ", fmt::format("{0}; --show {0} shows them in full", differ), base::Style::kNote);
  }
  std::string text = canvas.text();
  for (int i = 0; i < std::min(differ, options.show); ++i) {
    text += "\n";
    std::istringstream lines(agreement.differences[static_cast<std::size_t>(i)]);
    for (std::string line; std::getline(lines, line);) text += base::OneLine(line) + "\n";
  }
  return text;
}

std::string ToJson(const Answer& answer, const SimulateOptions& options) {
  const Agreement& agreement = answer.agreement;
  const std::unique_ptr<placement::JsonWriter> out = placement::NewJsonWriter(true);
  const auto number = [&](const char* key, int value) {
    out->Key(key);
    out->Int(value);
  };
  out->BeginMap();
  number("recordings", answer.recordings);
  out->Key("kubeletVersions");
  out->BeginList();
  for (const std::string& version : answer.versions) out->String(version);
  out->EndList();
  number("events", agreement.events);
  for (const Count& count : kCounts) {
    if (IsTold(count, options.live)) number(count.key, agreement.*count.count);
  }
  number("notCompared", agreement.left_out);
  number("notRecordedLive", agreement.untold);
  out->Key("agrees");
  out->Bool(agreement.Admissions());
  number("differ", static_cast<int>(agreement.differences.size()));
  out->Key("differences");
  out->BeginList();
  const int shown = std::min(static_cast<int>(agreement.differences.size()), options.show);
  for (int i = 0; i < shown; ++i) {
    out->String(agreement.differences[static_cast<std::size_t>(i)]);
  }
  out->EndList();
  out->EndMap();
  return out->text() + "\n";
}

}  // namespace

int RunRecorded(const SimulateOptions& options, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Answer> answer = ReplayFile(*options.recorded, options.live);
  if (!answer.ok()) {
    const std::string why(answer.status().message());
    err << "plumbline simulate: " << base::OneLine(why) << "\n";
    return kExitWrongInput;
  }
  out << (options.output == OutputFormat::kJson ? ToJson(*answer, options)
                                                : ToText(*answer, options));
  return answer->agreement.Admissions() ? kExitOk : kExitNo;
}

}  // namespace cli
