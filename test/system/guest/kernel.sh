# shellcheck shell=bash
# Debian's cloud kernel for the guest, sourced by boot.sh. It is unpacked beside the tree and never
# installed: this host must not boot it.

# Prints the path of a kernel, fetched once. Fails with a reason where it cannot be had.
guest_kernel() {
  local folder=${PLUMBLINE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/plumbline}/guest-kernel
  if [[ ! -s $folder/vmlinuz ]]; then
    fetch_kernel "$folder" >&2 || return
  fi
  echo "$folder/vmlinuz"
}

# The package of the newest cloud kernel that apt knows: the metapackage depends on it.
kernel_package() {
  apt-cache depends linux-image-cloud-amd64 2> /dev/null | awk '/Depends: linux-image-/ {print $2; exit}'
}

fetch_kernel() ( # fetch_kernel FOLDER
  set -e
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  # apt's lists may be absent, or so old that the kernel's file is gone.
  if [[ -z $(kernel_package) ]] || ! apt-get -qq download "$(kernel_package)" 2> /dev/null; then
    apt-get -qq update
    apt-get -qq download "$(kernel_package)" 2> /dev/null
  fi
  dpkg -x linux-image-*.deb unpacked
  mkdir -p "$1"
  mv unpacked/boot/vmlinuz-* "$1/vmlinuz.part"
  mv "$1/vmlinuz.part" "$1/vmlinuz"
)
