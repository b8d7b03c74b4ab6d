#!/usr/bin/env bash
# Runs a command on a node as a container would: a root of its own, in which of the node is only what is
# mounted, PIDs of its own, and no capability at all. In a mount namespace of its own, which it changes.
#   as_container.sh PROGRAMS SOURCE:TARGET... -- COMMAND...
# PROGRAMS is a folder with further programs. A SOURCE of "" is an empty folder. With INOTIFY_WATCHES=N in the
# environment it can watch no more than N files or folders, as on a host whose limit others have used up.
set -euo pipefail
programs=${1:?PROGRAMS}
shift
root=/mnt

read_only() { # read_only SOURCE TARGET
  mkdir -p "$2"
  mount --rbind "$1" "$2"
  mount -o remount,bind,ro "$2"
}

# What every container has: /proc and /sys tell the kernel's view of the machine, here the made-up one,
# with none of the host's cgroups.
own_kernel_files() {
  local file
  mkdir "$root/proc"
  mount -t proc proc "$root/proc"
  for file in meminfo cpuinfo driver; do mount --bind "/proc/$file" "$root/proc/$file"; done
  read_only /sys "$root/sys"
  mount -t tmpfs none "$root/sys/fs/cgroup"
}

mount -t tmpfs none "$root"
mkdir "$root"/{empty,tmp}
for folder in /usr /lib /lib64 /bin; do
  if [[ -d $folder ]]; then read_only "$folder" "$root$folder"; fi
done
read_only "$programs" "$root/programs"
own_kernel_files
while [[ $1 != -- ]]; do
  source=${1%%:*}
  read_only "${source:-$root/empty}" "$root${1#*:}"
  shift
done
shift
mount -o remount,ro "$root"
inside=(chroot "$root" /usr/bin/setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all
  /usr/bin/env -i PATH=/programs:/usr/bin NODE_NAME="$NODE_NAME" "$@")
if [[ -n ${INOTIFY_WATCHES-} ]]; then
  # The limit is one of a user namespace; in this one root is the same root, without its capabilities.
  # shellcheck disable=SC2016  # expanded by the inner shell
  exec unshare --user --map-root-user bash -c 'echo "$1" > "$2"; exec "${@:3}"' -- \
    "$INOTIFY_WATCHES" "$root/proc/sys/user/max_inotify_watches" "${inside[@]}"
fi
exec "${inside[@]}"
