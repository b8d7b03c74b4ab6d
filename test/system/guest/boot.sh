#!/usr/bin/env bash
# Boots the emulated machine with programs in it, runs a script there, and leaves what it reported in a folder.
#   boot.sh [--disk IMAGE] FOLDER SCRIPT PROGRAM...
# The script (of busybox's shell; see inside/) finds the PROGRAMs in its PATH with all their libraries. What it
# says by "section NAME COMMAND..." becomes FOLDER/NAME.txt, FOLDER/NAME.status and, if it said anything there,
# FOLDER/NAME.err.txt. IMAGE is an ext4 file system to run on instead of one in memory; it is not changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/system/guest/machine.sh
source "$here/machine.sh"
# shellcheck source=test/system/guest/debian.sh
source "$here/debian.sh"
# shellcheck source=test/system/guest/programs.sh
source "$here/programs.sh"

limit_s=${PLUMBLINE_GUEST_LIMIT_S:-900} # the longest takes 60 s on an idle machine
disk=
if [[ ${1-} == --disk ]]; then disk=${2:?IMAGE} && shift 2; fi
folder=${1:?FOLDER} script=${2:?SCRIPT}
programs=("${@:3}")
need_on_host qemu-system-x86_64 busybox cpio strip

make_initramfs() { # make_initramfs FILE
  local tree=$folder/initramfs program module
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,disk,proc,sys,tmp}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  install -m 755 "$here/inside/init" "$tree/init"
  cp "$script" "$tree/script"
  for program in "${programs[@]}"; do put_program "$program" "$tree"; done
  if [[ -n $disk ]]; then
    mkdir "$tree/modules"
    for module in "${!guest_modules[@]}"; do # numbered, since the guest loads them by name
      cp "$kernel/modules/${guest_modules[module]}.ko" "$tree/modules/$module-${guest_modules[module]}.ko"
    done
  fi
  (cd "$tree" && find . | cpio -o -H newc --quiet) > "$1"
  rm -rf "$tree"
}

disk_arguments() {
  if [[ -z $disk ]]; then return; fi
  # Its bus is named, or QEMU would put it behind one of the NUMA nodes' expanders.
  printf '%s\n' -drive "file=$disk,if=none,id=disk,format=raw,snapshot=on" -device virtio-blk-pci,drive=disk,bus=pcie.0
}

boot() {
  local -a arguments
  mapfile -t arguments < <(guest_qemu_arguments && disk_arguments)
  timeout --foreground "$limit_s" qemu-system-x86_64 "${arguments[@]}" -nodefaults -no-user-config -no-reboot \
    -kernel "$kernel/vmlinuz" -initrd "$folder/initramfs.cpio" -append "$(guest_append)" \
    -display none -monitor none -serial "file:$folder/console.txt" -serial "file:$folder/report.txt" \
    < /dev/null > "$folder/qemu.txt" 2>&1
}

# QEMU 7.2 has been seen to end by a signal while it emulated with a thread for each CPU, hence one
# thread; should it do so again, that says nothing of the agent, and the machine is started again.
boot_again_if_qemu_crashed() {
  local try status=0
  for try in 1 2 3; do
    status=0
    boot || status=$?
    if ((status <= 128 || status == 137)); then return "$status"; fi
    echo "QEMU was ended by signal $((status - 128)), try $try"
  done
  return "$status"
}

# "BEGIN name ... END name status" becomes the file name; the status is kept beside it. An empty line before
# END is not the command's.
split_report() {
  awk -v folder="$folder" '
    $1 == "BEGIN" && !open { open = $2; file = folder "/" open ".txt"; held = 0; printf "" > file; next }
    open && held && !($1 == "END" && $2 == open && line == "") { print line > file }
    $1 == "END" && $2 == open { print $3 > (folder "/" open ".status"); close(file); open = ""; next }
    open { line = $0; held = 1 }
  ' <(tr -d '\r' < "$folder/report.txt")
}

mkdir -p "$folder"
rm -f "$folder"/*.txt "$folder"/*.status
kernel=$(guest_kernel) || { echo "skipped: Debian's cloud kernel could not be fetched" && exit 77; }
make_initramfs "$folder/initramfs.cpio"
if ! boot_again_if_qemu_crashed || [[ $(tail -n 1 "$folder/report.txt") != OFF* ]]; then
  echo "the emulated machine did not do its work and switch itself off within $limit_s s; its console ends:"
  tail -n 40 "$folder/console.txt" "$folder/qemu.txt" 2> /dev/null
  exit 1
fi
split_report
