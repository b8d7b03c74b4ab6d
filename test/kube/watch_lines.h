#pragma once

#include <string>

// What an API server sends to a watch.
namespace test {

inline std::string EventLine(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
inline std::string BookmarkLine(const std::string& version) {
  return EventLine("BOOKMARK", R"({"metadata":{"resourceVersion":")" + version + R"("}})");
}
// The bookmark after the last object that was there at the beginning.
inline std::string InitialEndLine(const std::string& version) {
  return EventLine("BOOKMARK", R"({"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},)"
                               R"("resourceVersion":")" +
                                   version + R"("}})");
}

}  // namespace test
