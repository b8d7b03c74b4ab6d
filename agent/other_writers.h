#pragma once

#include <string>
#include <vector>

#include "kube/metadata.h"

// Who else writes a NodeResourceTopology. All of it is read from the object's metadata.
namespace agent {

// Managers other than ours that own something of its content (zones, attributes or the deprecated
// policies), each once, sorted. One that only put a label on it is no writer.
std::vector<std::string> OtherWriters(const kube::Metadata& metadata);

// What takes away all that other writers left beside what we applied: a merge patch of the object
// as it is now. Apply alone takes over only the fields that we write ourselves.
//   zones and attributes of their own   the lists become ours, as they were applied
//   annotations, labels, owners         theirs go unless we set them, too
//   their entries in managedFields      go; those of other managers stay
// After our apply it only removes, so that the patch itself leaves no entry of ours that a later
// apply would be in conflict with.
// InvalidArgument if `applied` is no such object.
absl::StatusOr<std::string> RemovalOf(const std::vector<std::string>& writers,
                                      const kube::Metadata& metadata, const std::string& applied);

}  // namespace agent
