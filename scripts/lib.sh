# shellcheck shell=bash
# What the scripts share; sourced. Every script works from any directory and in the project's root.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
# Outlives the tree: the guest's kernel, what lint has found clean.
export PLUMBLINE_CACHE=${PLUMBLINE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/plumbline}

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

# Compiler jobs: one a CPU, but 1.5 GiB each. A compiler that the kernel kills looks like a broken
# source file.
parallel_jobs() {
  local cpus memory_kib
  cpus=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  local fit=$((memory_kib / (1536 * 1024)))
  echo $((fit < 1 ? 1 : fit < cpus ? fit : cpus))
}

use_ccache() {
  if [[ -z ${PLUMBLINE_CCACHE+set} ]]; then
    if command -v ccache > /dev/null; then PLUMBLINE_CCACHE=ccache; else PLUMBLINE_CCACHE=; fi
  fi
  # Trees in different folders share the cache.
  export PLUMBLINE_CCACHE CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
}

# Configures only when the presets or the compiler launcher changed; other changes ninja sees itself.
configure() { # configure PRESET
  local preset=$1 folder=build/$1 stamp
  stamp="$(cksum < CMakePresets.json) ${PLUMBLINE_CCACHE-}"
  if [[ -f $folder/build.ninja && $(cat "$folder/.configured" 2> /dev/null) == "$stamp" ]]; then
    return
  fi
  mkdir -p "$folder"
  if ! cmake --preset "$preset" > "$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    die "cmake --preset $preset failed"
  fi
  echo "$stamp" > "$folder/.configured"
}

# Builds quietly: a counter on a terminal, one line elsewhere, everything where it fails.
build() { # build PRESET [TARGET...]
  local preset=$1 folder=build/$1 log=build/$1/build.log
  shift
  use_ccache
  configure "$preset"
  # An up-to-date build is a matter of milliseconds and says nothing.
  if ninja -C "$folder" -n "$@" 2> /dev/null | grep -q 'no work to do'; then return; fi
  say "building $folder ($(parallel_jobs) at a time; log: $log)"
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -k 20 -j "$(parallel_jobs)" "$@" 2>&1 | tee "$log" | show_progress; then
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Generating)' "$log" >&2 || true
    die "the build of $folder failed"
  fi
}

# The last step's number on a terminal, nothing elsewhere.
show_progress() {
  local line
  while IFS= read -r line; do
    if [[ -t 2 && $line == \[* ]]; then printf '\r\033[K%s' "${line%%\]*}]" >&2; fi
  done
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}
