#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// Standard alphabet, padding required, line ends ignored, as Go's encoding/base64 reads it;
// nothing if it is no base64.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace kube
