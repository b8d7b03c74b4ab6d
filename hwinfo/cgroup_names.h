#pragma once

#include <optional>
#include <string>
#include <string_view>

// How kubelets and container runtimes name cgroups. The path is never built: the cgroup root and
// the driver differ from node to node, the names of the folders do not.
namespace hwinfo {

// A control file of the kernel, "memory.max" or "tasks": no folder.
bool IsControlFile(std::string_view name);

// The cgroup of all pods: "kubepods", "kubepods.slice", "kubelet-kubepods.slice" (kind).
bool IsAllPods(std::string_view name);

// The pod's UID: "pod<uid>" with cgroupfs, "kubepods-burstable-pod<uid>.slice" with systemd, which
// writes '_' for '-'. For static pods this is the kubelet's own UID, 32 digits without dashes.
std::optional<std::string> PodUidOf(std::string_view name);

// The container's id, 64 hexadecimal digits: "<id>", "crio-<id>", "cri-containerd-<id>.scope",
// "docker-<id>.scope". Nothing for CRI-O's monitor, "crio-conmon-<id>.scope", which is no
// container.
std::optional<std::string> ContainerIdOf(std::string_view name);
bool IsContainerId(std::string_view text);

}  // namespace hwinfo
