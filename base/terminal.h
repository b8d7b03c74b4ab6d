#pragma once

#include <string>
#include <string_view>

// The process's standard streams. For the programs' main alone: everything below is told what was
// found here.
namespace base {

// Who reads standard output.
struct Terminal {
  std::string locale;     // the one of LC_ALL, LC_CTYPE, LANG that counts
  bool no_color = false;  // NO_COLOR is set and not empty, or the terminal is dumb
  bool is_terminal = false;
  int columns = 0;  // of the terminal; 0 if it is none
};
Terminal LookAtTerminal();

// An environment variable; "" if it is not set.
std::string Variable(const char* name);

// Whether a locale's name, such as "C.UTF-8", says that text is UTF-8.
bool IsUtf8(const std::string& locale);

// What was closed before we started would be taken by the first files and sockets that are opened,
// and what is meant for the terminal be written there. Read-only, so that writing still fails.
void HoldClosedStreams();

// To standard output; false if it cannot be written, as to a full disk.
bool Print(std::string_view text);

// A line to standard error, and no matter if nobody can read it.
void Tell(std::string_view text);

}  // namespace base
