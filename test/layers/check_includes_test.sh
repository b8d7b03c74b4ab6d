#!/usr/bin/env bash
# Tests check_includes.sh: it accepts a tree that keeps the rule, and finds each way to break it.
set -euo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

good_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{base,hwinfo,podresources,placement,agent,scheduler,test}
  echo '#include <string>' > "$tree/base/clock.h"
  printf '%s\n' '#include <hwloc.h>' '#include "base/clock.h"' '#include "absl/status/status.h"' > "$tree/hwinfo/read.cc"
  printf '%s\n' '#include <grpcpp/grpcpp.h>' '#include "proto/podresources.pb.h"' > "$tree/podresources/client.cc"
  echo '#include "hwinfo/read.h"' > "$tree/placement/observation.h"
  echo '#include "placement/observation.h"' > "$tree/agent/main.cc"
  echo '#include "agent/picture.h"' > "$tree/test/picture_test.cc"
}

# breaks FILE LINE MESSAGE: with LINE in FILE, the check fails and says MESSAGE.
breaks() {
  local output
  good_tree
  mkdir -p "$tree/${1%/*}"
  echo "$2" >> "$tree/$1"
  if output=$("$check" "$tree"); then
    echo "not found: $2 in $1"
    failures=1
  elif [[ $output != "$1:"*"$3"* ]]; then
    echo "expected \"$3\" for $2 in $1, got: $output"
    failures=1
  fi
}

good_tree
"$check" "$tree" || { echo "a tree that keeps the rule is refused" && failures=1; }

breaks base/clock.h '#include "hwinfo/read.h"' 'base may not include hwinfo'
breaks hwinfo/read.cc '#include "podresources/client.h"' 'hwinfo may not include podresources'
breaks podresources/client.cc '#include "hwinfo/read.h"' 'podresources may not include hwinfo'
breaks placement/observation.h '#include "agent/picture.h"' 'placement may not include agent'
breaks agent/main.cc '#include "scheduler/predict.h"' 'agent may not include scheduler'
breaks scheduler/ledger.cc '  #  include "agent/picture.h"' 'scheduler may not include agent'
breaks agent/main.cc '#include "test/support/status.h"' 'agent may not include test'
breaks agent/main.cc '#include "picture.h"' 'does not begin with its room'
breaks hwinfo/read.h '#include <hwloc.h>' 'only be included by .cc files'
breaks hwinfo/read.h '#include <hwloc/linux.h>' 'only be included by .cc files'
breaks test/fakes/kubelet.h '#include <grpcpp/grpcpp.h>' 'only be included by .cc files'
breaks agent/main.cc '#include <grpcpp/grpcpp.h>' 'agent may not include grpcpp'
breaks placement/observation.cc '#include "proto/podresources.pb.h"' 'placement may not include'
breaks base/quantity.cc '#include <rapidjson/document.h>' 'base may not include rapidjson'
breaks hwinfo/read.cc '#include <yaml-cpp/yaml.h>' 'hwinfo may not include yaml-cpp'
breaks placement/observation.cc '#include <CLI/CLI.hpp>' 'placement may not include CLI'
breaks placement/observation.cc '  return absl::StrCat(1, 2);' 'not used here'
breaks hwinfo/read.cc '  return std::stoi(text);' 'not used here'

exit "$failures"
