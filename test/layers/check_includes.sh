#!/usr/bin/env bash
# Checks who includes whom and which library headers appear where; prints each offence as
# "file:line: what" and fails if there is one.
#   check_includes.sh ROOT
set -euo pipefail
cd "${1:?ROOT}"

# A room and the rooms it may include, itself aside. demo and test may include every room, no room
# includes them.
rooms='
base:
proto:
hwinfo: base
podresources: base proto
kube: base
placement: base hwinfo podresources kube
agent: base hwinfo podresources kube placement
scheduler: base hwinfo podresources kube placement
cli: base hwinfo podresources kube placement scheduler
demo: base hwinfo podresources kube placement agent scheduler cli proto
test: base hwinfo podresources kube placement agent scheduler cli proto demo
'

# Heavy libraries: a pattern for the header, and the rooms whose .cc files may include it. They stay
# out of headers everywhere, also of test headers: one include costs seconds in each file.
libraries='
hwloc([.]h|/.*) hwinfo test
numa(if)?[.]h hwinfo
(grpc|grpcpp|google/protobuf)/.* podresources test demo
.*[.]pb[.]h podresources test demo
boost/.* agent kube test
openssl/.* kube test
rapidjson/.* podresources placement kube agent scheduler cli test demo
yaml-cpp/.* podresources placement kube agent scheduler cli test demo
CLI/.* agent scheduler cli test demo
spdlog/.* podresources kube agent scheduler cli test demo
prometheus/.* agent scheduler test
httplib[.]h test
xxhash[.]h base placement scheduler test
'

# Debian's abseil has its own string_view and optional, which are not std's; messages are made by fmt.
# std::stoi and its kind throw.
banned='absl::(StrCat|StrFormat|string_view|optional|variant|any)[^A-Za-z_]|std::sto(i|l|ll|ul|ull|f|d|ld)[(]'

sources() {
  local room
  for room in base proto hwinfo podresources kube placement agent scheduler cli demo test; do
    if [[ -d $room ]]; then find "$room" -name '*.h' -o -name '*.cc'; fi
  done | LC_ALL=C sort
}

mapfile -t files < <(sources)
((${#files[@]})) || { echo "no sources under $PWD" >&2 && exit 1; }
awk -v rooms="$rooms" -v libraries="$libraries" -v banned="$banned" '
  function offence(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; offences++ }

  # Includes of the project are "room/…"; a name without a room would escape the rule.
  function check_room(header,   to) {
    to = header; sub(/\/.*/, "", to)
    if (header !~ /\//) { offence("include \"" header "\" does not begin with its room"); return }
    if (!(to in known) || to == room) return
    if (!((room, to) in may)) offence(room " may not include " to " (" header ")")
  }

  function check_library(header,   i) {
    for (i = 1; i <= library_count; i++) {
      if (header !~ ("^(" pattern[i] ")$")) continue
      if (FILENAME !~ /[.]cc$/) offence(header " may only be included by .cc files")
      else if (index(" " users[i] " ", " " room " ") == 0) offence(room " may not include " header)
    }
  }

  BEGIN {
    n = split(rooms, line, "\n")
    for (i = 1; i <= n; i++) {
      if (line[i] == "") continue
      from = line[i]; sub(/:.*/, "", from); known[from] = 1
      list = line[i]; sub(/^[^:]*:/, "", list)
      m = split(list, to, " ")
      for (j = 1; j <= m; j++) may[from, to[j]] = 1
    }
    n = split(libraries, line, "\n")
    for (i = 1; i <= n; i++) {
      if (line[i] == "") continue
      pattern[++library_count] = line[i]; sub(/ .*/, "", pattern[library_count])
      users[library_count] = line[i]; sub(/^[^ ]* /, "", users[library_count])
    }
  }

  FNR == 1 { room = FILENAME; sub(/\/.*/, "", room) }
  /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = $0 ~ /include[ \t]*"/
    header = $0; sub(/^[^"<]*["<]/, "", header); sub(/[">].*/, "", header)
    check_library(header)
    if (quoted) check_room(header)
    next
  }
  $0 ~ banned && room != "test" && $0 !~ /^[ \t]*\/\// { offence("this is not used here, see CONTRIBUTING.md: " $0) }
  END { exit offences > 0 }
' "${files[@]}"
