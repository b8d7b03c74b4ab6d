# shellcheck shell=bash
# What scripts/test --system and test/system/up share; sourced after scripts/lib.sh.

as_root=()
if ((EUID != 0)); then as_root=(sudo); fi

# Installs what is needed, and builds our programs and, meanwhile, the peers.
prepare_system() { # prepare_system PRESET
  local peers
  ((EUID == 0)) || command -v sudo > /dev/null || die "the sandbox needs root, and there is no sudo"
  scripts/packages build test guest system
  mkdir -p build/system
  test/system/peers/build > build/system/peers &
  peers=$!
  build "$1"
  build release plumbline-agent # what is measured
  wait "$peers" || die "the peers could not be built"
  system_bin=$PWD/build/$1/bin
}

# Runs a command as root. What a cluster leaves goes to build/system/NAME, which another run would empty.
in_system() { # in_system NAME COMMAND...
  exec 8> "build/system/$1.lock"
  flock --nonblock 8 || die "build/system/$1 is in use by another run"
  "${as_root[@]}" env \
    PATH="$system_bin:/usr/sbin:/usr/bin:/sbin:/bin" PYTHONPATH="$PWD/test/system" PYTHONDONTWRITEBYTECODE=1 \
    SYSTEM_FOLDER="$PWD/build/system/$1" SYSTEM_PEERS="$(cat build/system/peers)" \
    SYSTEM_RANDOM_SECONDS="${SYSTEM_RANDOM_SECONDS:-20}" SYSTEM_SEED="${SYSTEM_SEED:-1}" \
    SYSTEM_CHAOS_SECONDS="${SYSTEM_CHAOS_SECONDS:-90}" \
    SYSTEM_MEASURE_SECONDS="${SYSTEM_MEASURE_SECONDS:-10}" SYSTEM_MEASURE_CHANGES="${SYSTEM_MEASURE_CHANGES:-60}" \
    SYSTEM_RELEASE="$PWD/build/release/bin" PLUMBLINE_AGENT="$system_bin/plumbline-agent" \
    "${@:2}"
}
