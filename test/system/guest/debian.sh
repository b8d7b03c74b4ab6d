# shellcheck shell=bash
# What the guest takes from Debian: a kernel, and a container runtime. Sourced by boot.sh and
# root_image.sh. Both are unpacked beside the tree and never installed: this host must not boot the
# one, and its own runtime (Docker's, say) must not meet the other.
guest_cache=${PLUMBLINE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/plumbline}
# To see a disk and to stack container images on it, in the order in which they need each other; ext4 is built
# in.
guest_modules=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk overlay)

# Prints the folder with vmlinuz and modules/. Fails with a reason where it cannot be had.
guest_kernel() { fetched guest-kernel modules arrange_kernel kernel_package; }

# Prints the folder with the runtime's usr/. Fails with a reason where it cannot be had.
guest_runtime() { fetched guest-runtime usr true echo containerd crun libyajl2; }

# Prints a folder of the cache, fetched if it lacks PART.
fetched() { # fetched FOLDER PART REARRANGE NAME-COMMAND...
  local folder=$guest_cache/$1
  if [[ ! -d $folder/$2 ]]; then
    mkdir -p "$guest_cache"
    fetch "$folder" "${@:2}" >&2 9> "$folder.lock" || return
  fi
  echo "$folder"
}

# The package of the newest cloud kernel that apt knows: the metapackage depends on it.
kernel_package() {
  apt-cache depends linux-image-cloud-amd64 2> /dev/null | awk '/Depends: linux-image-/ {print $2; exit}'
}

# Of the unpacked package only what the guest loads.
arrange_kernel() {
  local module
  mkdir modules
  for module in "${guest_modules[@]}"; do
    find lib/modules -name "$module.ko" -exec mv {} modules/ \;
    [[ -f modules/$module.ko ]] || { echo "Debian's cloud kernel has no module $module" && return 1; }
  done
  mv boot/vmlinuz-* vmlinuz
  rm -rf boot lib usr
}

# Unpacks the packages that a command names, rearranges them, and puts them in place as a whole. Who comes while
# another fetches the same waits for it.
fetch() ( # fetch FOLDER PART REARRANGE NAME-COMMAND...
  set -e
  flock 9
  if [[ -d $1/$2 ]]; then exit; fi
  work=$(mktemp -d "$1.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  # apt's lists may be absent, or so old that a package's file is gone.
  if ! download "${@:4}" 2> /dev/null; then
    apt-get -qq update
    download "${@:4}"
  fi
  mkdir unpacked
  for package in *.deb; do dpkg -x "$package" unpacked; done
  (cd unpacked && "$3")
  rm -rf "$1"
  mv -T unpacked "$1"
)

download() { # download NAME-COMMAND...
  local -a names
  mapfile -t names < <("$@" | tr ' ' '\n')
  if ((${#names[@]} == 0)); then return 1; fi
  apt-get -qq -o APT::Sandbox::User=root download "${names[@]}"
}
