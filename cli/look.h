#pragma once

namespace cli {

// How text is drawn.
struct Look {
  bool ascii = false;
  bool color = false;
  int width = 80;  // columns
};

}  // namespace cli
