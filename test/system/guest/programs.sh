# shellcheck shell=bash
# Programs of this host, sourced: those that a script needs here, and those that go into the guest.

# 77 is how ctest tells a test that cannot run here from one that fails.
need_on_host() { # need_on_host PROGRAM...
  local program
  for program in "$@"; do
    if ! command -v "$program" > /dev/null; then
      echo "skipped: $program is not installed"
      exit 77
    fi
  done
}

# Puts a program with its libraries into a tree; debug information stays outside.
put_program() { # put_program PROGRAM TREE
  local libraries library folder
  strip -o "$2/bin/${1##*/}" "$1"
  libraries=$(ldd "$1" 2> /dev/null) || return 0 # a static program has none
  if [[ $libraries == *'not found'* ]]; then
    echo "$1 lacks libraries on this host: $libraries" >&2
    return 1
  fi
  # They go where the loader looks, wherever they were found.
  mkdir -p "$2/lib" "$2/lib64"
  awk '$2 == "=>" {print $3, "lib"} $1 ~ /^\// {print $1, "lib64"}' <<< "$libraries" |
    while read -r library folder; do cp -L "$library" "$2/$folder/"; done
}
