#!/usr/bin/env bash
# The first process of a node, in mounts, PIDs and host name of its own: puts the made-up machine in
# the place of this one, then stays as the parent of what is started inside.
#   node_init.sh TREE HOSTNAME
# TREE has sys/, proc/{meminfo,cpuinfo,driver}, var/lib/kubelet, var/log/pods, var/log/containers
# and run/containerd.
set -euo pipefail
tree=${1:?TREE} name=${2:?HOSTNAME}

# What a kubelet writes to /proc/sys when it starts, and what it wants there (its setupKernelTunables).
declare -A tunables=(
  [vm/overcommit_memory]=1 [vm/panic_on_oom]=0 [kernel/panic]=10 [kernel/panic_on_oops]=1
  [kernel/keys/root_maxkeys]=1000000 [kernel/keys/root_maxbytes]=25000000
)

# These are no namespace's but this host's: files that have what it wants lie over them, and the rest of
# /proc/sys is read-only.
shield_tunables() {
  local name file
  mount --bind /proc/sys /proc/sys
  mount -o remount,bind,ro /proc/sys
  for name in "${!tunables[@]}"; do
    file=$tree/proc/sys/$name
    mkdir -p "${file%/*}"
    echo "${tunables[$name]}" > "$file"
    mount --bind "$file" "/proc/sys/$name"
  done
}

mount -t proc proc /proc
shield_tunables
mount --rbind /sys/fs/cgroup "$tree/sys/fs/cgroup" # the kubelet looks for its cgroup controllers
mount --rbind "$tree/sys" /sys
for file in meminfo cpuinfo driver; do
  mount --bind "$tree/proc/$file" "/proc/$file"
done
for folder in var/lib/kubelet var/log/pods var/log/containers run/containerd; do
  mount --bind "$tree/$folder" "/$folder"
done
hostname "$name"
echo ready
while :; do sleep 1000 & wait; done
