#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

// What the API server answers about an object that agents write, in few words.
namespace test {

// An entry of metadata.managedFields.
inline std::string Managed(const std::string& manager, const std::string& fields,
                           const std::string& subresource = "") {
  return fmt::format(R"({{"manager":"{}","operation":"Apply",{}"fieldsV1":{}}})", manager,
                     subresource.empty() ? "" : fmt::format(R"("subresource":"{}",)", subresource),
                     fields);
}

struct ApiObject {
  std::string version = "1";
  std::vector<std::string> managed = {};
  std::string owners = "";  // owner references, without the brackets
  std::string uid = "object-1";
};

// As the metadata of an object of node gpu-7.
inline std::string Json(const ApiObject& object) {
  return fmt::format(
      R"({{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"gpu-7",)"
      R"("uid":"{}","resourceVersion":"{}","ownerReferences":[{}],"managedFields":[{}]}}}})",
      object.uid, object.version, object.owners, fmt::join(object.managed, ","));
}

inline std::string WatchLine(const std::string& type, const ApiObject& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, Json(object));
}
// The watch's list is complete.
inline std::string WatchSynced() {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1",)"
         R"("annotations":{"k8s.io/initial-events-end":"true"}}}})";
}

// A refusal.
inline std::string Refusal(int code, const std::string& reason, const std::string& message,
                           const std::string& name = "gpu-7", const std::string& causes = "") {
  return fmt::format(
      R"({{"kind":"Status","code":{},"reason":"{}","message":"{}","details":{{"name":"{}",)"
      R"("causes":[{}]}}}})",
      code, reason, message, name, causes);
}

}  // namespace test
