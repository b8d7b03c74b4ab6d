#include "base/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace base {
namespace {

std::string Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = Variable(name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

Terminal LookAtTerminal() {
  Terminal terminal;
  terminal.locale = Locale();
  terminal.no_color = !Variable("NO_COLOR").empty() || Variable("TERM") == "dumb";
  terminal.is_terminal = isatty(STDOUT_FILENO) == 1;
  winsize window{};
  if (terminal.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    terminal.columns = window.ws_col;
  }
  return terminal;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsUtf8(const std::string& locale) {
  std::string lower = locale;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
}

void HoldClosedStreams() {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
  }
}

bool Print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

// fmt::print would throw.
void Tell(std::string_view text) { std::fputs(fmt::format("{}\n", text).c_str(), stderr); }

}  // namespace base
