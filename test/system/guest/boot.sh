#!/usr/bin/env bash
# Boots the emulated machine with a program in it and leaves what it reported in a folder.
#   boot.sh AGENT FOLDER     makes FOLDER/{console.txt,report.txt} and a file for each section of the report
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/system/guest/machine.sh
source "$here/machine.sh"
# shellcheck source=test/system/guest/kernel.sh
source "$here/kernel.sh"

limit_s=${PLUMBLINE_GUEST_LIMIT_S:-300} # the boot takes 5 s on an idle machine
agent=${1:?AGENT} folder=${2:?FOLDER}

# Puts a program with its libraries into the tree; debug information stays outside.
put_program() { # put_program PROGRAM TREE
  local library
  strip -o "$2/bin/${1##*/}" "$1"
  ldd "$1" | awk '$2 == "=>" {print $3} $1 ~ /^\// {print $1}' | while read -r library; do
    mkdir -p "$2${library%/*}"
    cp -L "$library" "$2$library"
  done
}

make_initramfs() { # make_initramfs FILE
  local tree=$folder/initramfs
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,proc,sys,tmp}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  install -m 755 "$here/init" "$tree/init"
  put_program "$agent" "$tree"
  (cd "$tree" && find . | cpio -o -H newc --quiet) > "$1"
  rm -rf "$tree"
}

boot() {
  local -a arguments
  mapfile -t arguments < <(guest_qemu_arguments)
  timeout --foreground "$limit_s" qemu-system-x86_64 "${arguments[@]}" -nodefaults -no-user-config -no-reboot \
    -kernel "$kernel" -initrd "$folder/initramfs.cpio" -append "$(guest_append)" \
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

# "BEGIN name … END name status" becomes the file name; the status is kept beside it.
split_report() {
  awk -v folder="$folder" '
    $1 == "BEGIN" && !open { open = $2; file = folder "/" open ".txt"; printf "" > file; next }
    $1 == "END" && $2 == open { print $3 > (folder "/" open ".status"); close(file); open = ""; next }
    open { print > file }
  ' <(tr -d '\r' < "$folder/report.txt")
}

mkdir -p "$folder"
rm -f "$folder"/*.txt "$folder"/*.status
kernel=$(guest_kernel) || { echo "skipped: Debian's cloud kernel could not be fetched" && exit 77; }
make_initramfs "$folder/initramfs.cpio"
if ! boot_again_if_qemu_crashed; then
  echo "the emulated machine did not switch itself off within $limit_s s; its console ends:"
  tail -n 40 "$folder/console.txt" "$folder/qemu.txt" 2> /dev/null
  exit 1
fi
split_report
