#pragma once

#include <memory>
#include <string>

#include "placement/document_writer.h"

namespace placement {

class JsonWriter : public DocumentWriter {
 public:
  virtual std::string text() const = 0;
};

std::unique_ptr<JsonWriter> NewJsonWriter(bool indented);

}  // namespace placement
