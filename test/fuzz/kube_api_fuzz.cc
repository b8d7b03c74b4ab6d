// Any bytes as the body of an API server's reply: a list, an object, a refusal. An error or values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kube/api_error.h"
#include "kube/json.h"
#include "kube/object.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(data, data + size);
  const kube::ApiError error =
      kube::ReadApiError({.status = 409, .retry_after = body, .body = body});
  kube::IsPassing(error);
  if (kube::ToStatus(error, "try").ok()) std::abort();
  const absl::StatusOr<kube::Object> object = kube::ParseObject(body);
  // Its text is the same object.
  if (object.ok() && *kube::ParseObject(object->json) != *object) std::abort();
  const absl::StatusOr<kube::ListPage> page = kube::ParseListPage(body);
  if (!page.ok()) return 0;
  for (const kube::Object& item : page->list.items) {
    if (!kube::JsonObject::Parse(item.json).ok()) std::abort();
  }
  return 0;
}
