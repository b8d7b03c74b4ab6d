#!/usr/bin/env bash
# Boots the emulated machine and compares three words on it: what QEMU was told, what the guest's
# kernel says, what the agent says.
#   hardware_test.sh AGENT FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/system/guest/machine.sh
source "$here/machine.sh"
# shellcheck source=test/system/guest/programs.sh
source "$here/programs.sh"
agent=${1:?AGENT} folder=${2:?FOLDER}
failures=0

need_on_host jq

same() { # same WHAT EXPECTED ACTUAL
  if ! diff -u --label expected --label "$1" <(sort -u <<< "$2") <(sort -u <<< "$3"); then
    echo "^ $1 differs"
    failures=$((failures + 1))
  fi
}

# Memory is compared apart: the kernel keeps some of what QEMU gave.
without_memory() { grep -v ' memory-kib '; }
memory_only() { grep ' memory-kib ' || true; }

memory_is_near() { # memory_is_near FACTS
  local node kib given
  for node in 0 1; do
    given=$((guest_memory_mib[node] * 1024))
    kib=$(awk -v node="$node" '$1 == "node" && $2 == node && $3 == "memory-kib" {print $4}' <<< "$1")
    if ! ((${kib:-0} <= given && ${kib:-0} > given * 85 / 100)); then
      echo "NUMA node $node was given $given KiB, the kernel says ${kib:-nothing}"
      failures=$((failures + 1))
    fi
  done
}

# The agent's NodePlacement as facts.
facts_of_json() {
  jq -r '
    def bytes: capture("^(?<n>[0-9]+)(?<unit>[KMG]i)?$")
      | (.n | tonumber) * {"Ki": 1024, "Mi": 1048576, "Gi": 1073741824, "": 1}[.unit // ""];
    .. | objects | select(.kind? == "NodePlacement") | .status.numaNodes[] | . as $node
    | "node \(.id) cpus \(.cpus)",
      "node \(.id) distances \(.distances | to_entries | sort_by(.key | tonumber) | map("\(.value)") | join(" "))",
      (.memory[] | select(.type == "hugepages-2Mi") | "node \($node.id) hugepages-2048kB \((.capacity | bytes) / 2097152)"),
      (.memory[] | select(.type == "memory") | "node \($node.id) memory-kib \((.capacity | bytes) / 1024)"),
      (.coreGroups[] | .socket as $socket | .cores | split(" ")[] | "core \(.) socket \($socket)")
  ' "$1"
}

# The agent's picture as facts: its boxes are NUMA nodes, with a rule before the devices of a kind.
facts_of_picture() {
  awk '
    /^\+- NUMA node [0-9]+ / { node = $4; kind = "" ; next }
    /^\+- [A-Z]/ { node = "unknown"; kind = ""; next } # the box of what is on no known node
    /^\+- [0-9]+ / { kind = $3 ~ /^GPU/ ? "gpu" : $3 ~ /^NIC/ ? "nic" : $3; next }
    /^\+-/ { kind = "" }
    kind != "" && $2 ~ /^([0-9a-f]+:)?[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f][.][0-7]$/ {
      print "device " ($2 ~ /:.*:/ ? "" : "0000:") $2 " " kind " node " node
    }
    match($0, /isolated CPUs [0-9,-]+/) { print "isolated " substr($0, RSTART + 14, RLENGTH - 14) }
  ' "$1"
}

status=0
"$here/boot.sh" "$folder" "$here/inside/hardware.sh" "$agent" || status=$?
if ((status)); then exit "$status"; fi
# The guest has no kubelet. The picture says so itself; beside JSON that line goes to stderr.
no_kubelet='^plumbline-agent: Hardware only, no kubelet at '
for section in picture json; do
  said=$(cat "$folder/$section.err.txt" 2> /dev/null || true)
  if [[ $section == json ]]; then
    grep -q "$no_kubelet" <<< "$said" || said="nothing of the missing kubelet"
    said=$(grep -v "$no_kubelet" <<< "$said" || true)
  fi
  if [[ $(cat "$folder/$section.status") != 0 || -n $said ]]; then
    echo "$section: the agent left with $(cat "$folder/$section.status") and said:"
    echo "$said"
    failures=$((failures + 1))
  fi
done
expected=$(guest_expected_facts)
kernel=$(cat "$folder/facts.txt")
agents=$(facts_of_json "$folder/json.txt" && facts_of_picture "$folder/picture.txt")
memory_is_near "$kernel"
same "the guest's kernel" "$expected" "$(without_memory <<< "$kernel")"
same "the agent" "$expected" "$(without_memory <<< "$agents")"
same "the agent's memory" "$(memory_only <<< "$kernel")" "$(memory_only <<< "$agents")"
if ((failures)); then cat "$folder/picture.txt"; fi
exit $((failures > 0))
