#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/kai_placement.h"
#include "agent/rewrites.h"
#include "base/clock.h"

namespace agent {

// A pod as the API server has it.
struct AnnotatedPod {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  std::uint64_t version = 0;  // of this object; they grow
  std::string value = {};     // of the annotation; "" if there is none
};

// Which pods are to be annotated: those whose annotation is another than what they hold. Pure: time
// comes in.
//
// A pod is told by its UID: one that was made anew under its name holds nothing until it is listed
// with its own. One of which only the name is known is left as it is.
class AnnotationPlan {
 public:
  // How long a pod whose annotation was refused is left alone.
  static constexpr std::chrono::seconds kRetry{30};

  // What the pods of the node hold; all others hold nothing.
  void Hold(const std::vector<KaiPlacement>& placements);
  void Seen(const AnnotatedPod& pod);
  void Gone(const std::string& namespace_name, const std::string& name);

  // The pod that is to be annotated now, with the value that it is to have ("": none); nullopt if
  // there is nothing to do. Nothing is known as long as nobody said what the pods hold.
  std::optional<AnnotatedPod> Next(base::Instant now) const;
  // It was, and has this version now. If others write the annotation, too, it is written again at
  // once, twice, and then not faster than every 30 s.
  void Written(const AnnotatedPod& pod, base::Instant now);
  void Refused(const AnnotatedPod& pod, base::Instant now);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Pod {
    AnnotatedPod seen;
    std::optional<std::string> written;  // by us
    Rewrites rewrites;
    base::Instant refused_until = base::Instant::min();
  };

  std::optional<std::string> Wanted(const Key& key, const Pod& pod) const;
  Pod* Find(const AnnotatedPod& pod);

  std::optional<std::map<Key, KaiPlacement>> held_;
  std::map<Key, Pod> pods_;
};

}  // namespace agent
