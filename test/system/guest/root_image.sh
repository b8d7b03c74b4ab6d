#!/usr/bin/env bash
# Makes the disk of the guest with containers and prints its path: containerd, crun, a container image, the
# kubelet and its device plugin, and the files of containers/. It is kept, and made anew when one of these changes.
#   root_image.sh PEERS     PEERS is the folder with kubelet, deviceplugin and podresources
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/system/guest/machine.sh
source "$here/machine.sh"
# shellcheck source=test/system/guest/debian.sh
source "$here/debian.sh"
# shellcheck source=test/system/guest/programs.sh
source "$here/programs.sh"

peers=${1:?PEERS}
PATH+=:/usr/sbin # mkfs is there, and not every user's PATH has it
need_on_host busybox mkfs.ext4 python3 strip
runtime=$(guest_runtime) || { echo "skipped: containerd and crun could not be fetched" && exit 77; }
busybox=$(command -v busybox)
programs=("$runtime"/usr/bin/{containerd,containerd-shim-runc-v2,crun,ctr} "$peers"/{kubelet,deviceplugin,podresources})
images=$guest_cache/guest-root

# Of all that goes in, and of how.
key() {
  {
    cat "${programs[@]}" "$busybox"
    cat "$here"/{root_image,programs,machine}.sh "$here"/containers/*.* "$here"/containers/pods/*
  } | sha256sum | cut -c1-16
}

# What the device plugin offers: the machine's GPUs, by their PCI addresses.
gpus() {
  guest_expected_facts | awk '$1 == "device" && $3 == "gpu" {print $2, $5}'
}

fill() { # fill TREE
  local program
  mkdir -p "$1"/{bin,dev,etc,pods,proc,root,run,sys,tmp,var/lib/kubelet,var/log}
  for program in "${programs[@]}"; do # crun's libyajl is with it only
    LD_LIBRARY_PATH=$runtime/usr/lib/x86_64-linux-gnu put_program "$program" "$1"
  done
  cp "$here"/containers/{kubelet.yaml,containerd.toml} "$1/etc"
  cp -r "$here/containers/pods" "$1/etc/pods"
  gpus > "$1/etc/gpus"
  "$here/containers/image.py" "$busybox" "$1/etc/image.tar"
  # What the kubelet and containerd look up of any machine.
  echo 'root:x:0:0::/root:/bin/sh' > "$1/etc/passwd"
  echo 'root:x:0:' > "$1/etc/group"
  echo '127.0.0.1 localhost guest' > "$1/etc/hosts"
  echo 'ID=guest' > "$1/etc/os-release"
  echo 0123456789abcdef0123456789abcdef > "$1/etc/machine-id"
  touch "$1/etc/resolv.conf"
}

# The file has holes; some 200 MB of it are used.
make_image() ( # make_image FILE
  set -e
  work=$(mktemp -d "$images/.making.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fill "$work/tree"
  truncate -s 700M "$work/root.ext4"
  mkfs.ext4 -q -F -O ^has_journal -m 0 -d "$work/tree" "$work/root.ext4"
  mv "$work/root.ext4" "$1"
)

mkdir -p "$images"
image=$images/$(key).ext4
if [[ ! -s $image ]]; then make_image "$image"; fi
touch "$image"
# Other trees' images stay for a while: one takes seconds to make.
find "$images" -mindepth 1 -maxdepth 1 -mmin +240 -exec rm -rf {} +
echo "$image"
