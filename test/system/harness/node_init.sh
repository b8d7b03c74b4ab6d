#!/usr/bin/env bash
# The first process of a node, in mounts, PIDs and host name of its own: puts the made-up machine in
# the place of this one, then stays as the parent of what is started inside.
#   node_init.sh TREE HOSTNAME
# TREE has sys/, proc/{meminfo,cpuinfo,driver}, var/lib/kubelet, var/log/pods, var/log/containers
# and run/containerd.
set -euo pipefail
tree=${1:?TREE} name=${2:?HOSTNAME}

mount -t proc proc /proc
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
