#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/pod.h"

// From Kubernetes objects to the plain request. All errors are InvalidArgument and name the field:
//   spec.containers[1].resources.limits.cpu: "4x" is no quantity
namespace kube {

// One v1 Pod, as the API server serves it or as people write it; kind and apiVersion may be absent,
// as in the items of a PodList. Fields that admission does not look at are ignored, ephemeral
// containers among them: they cannot ask for resources.
//
// A pod with status.qosClass has been through an API server: its requests and its QoS class are
// taken as they stand, as the kubelet takes them. To any other one ApplyDefaults and ComputeQos are
// applied, as the API server does when it creates the pod.
//
// Amounts: cpu in milli-CPUs, everything else in whole units. Fractions round up one by one, where
// Kubernetes adds and compares them before it rounds: it can only differ for fractions of a byte.
// An amount beyond 64 bits becomes the largest within (for cpu: of whole CPUs), as Kubernetes does
// it with binary suffixes, and fits no node. Refused, as the API server refuses them: negative
// amounts, fractions of devices, no containers, a container without a name, two of one name.
absl::StatusOr<Pod> ParsePod(const std::string& json);

// The "kind" of an object; "" if it has none.
absl::StatusOr<std::string> KindOf(const std::string& json);

// The pods of one object of the kinds Pod, PodList or List; another kind is an error that names it
// and its place.
absl::StatusOr<std::vector<Pod>> ParsePodObject(const std::string& json);

// The pods of a whole text, YAML or JSON (kube/yaml.h), in its order. Errors name the document,
// from 1, if there is more than one. To look at the kinds first, take YamlToJson and KindOf.
absl::StatusOr<std::vector<Pod>> ParsePods(const std::string& text);

}  // namespace kube
