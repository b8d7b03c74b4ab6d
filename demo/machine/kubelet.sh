# The kubelet of the made-up node: its process, configuration, state files, logs' folders, the
# cgroups of its pods, and what it answers.
# shellcheck shell=bash disable=SC2154

gib=$((1 << 30))

# NAMESPACE POD UID CONTAINER CPUS NUMA-NODE GIB GPUS RDMA-NICS; "-" is none. Four GPUs and 32 CPUs a
# node, of which 0 and 32 are reserved.
pods=(
  "ml train-0 1001 worker 1-4,33-36 0 64 13,14 15"
  "ml train-1 1002 worker 16-19,48-51 1 64 83,84 85"
  "ml llm-0 1003 server 5-6,37-38 0 32 93 -"
  "batch etl-0 1004 main 7-14,20-31,39-46,52-63 1 16 - -"
  "ml notebook-0 1005 jupyter - - - 23 -"
  "kube-system dcgm-exporter-x7k2p 1006 exporter - - - - -"
)

uid_of() { echo "$1$1-0000-4000-8000-00000000$1"; }
container_id() { printf '%064x' "0x$1"; }

cpu_ids() { # "1-3,8" -> 1, 2, 3, 8
  local part parts ids=() id
  IFS=, read -ra parts <<<"$1"
  for part in "${parts[@]}"; do
    for ((id = ${part%-*}; id <= ${part#*-}; ++id)); do ids+=("$id"); done
  done
  join ', ' "${ids[@]}"
}

join() { # SEPARATOR ITEM...
  local separator=$1 text=${2-} item
  for item in "${@:3}"; do text+=$separator$item; done
  echo "$text"
}

topology() { echo "\"topology\": {\"nodes\": [{\"ID\": \"$1\"}]}"; }
node_of_bus() { if ((16#$1 < 16#80)); then echo 0; else echo 1; fi; }

device() { # RESOURCE ID NODE
  echo "{\"resourceName\": \"$1\", \"deviceIds\": [\"$2\"], $(topology "$3")}"
}
devices() { # GPUS NICS, as buses
  local bus found=()
  for bus in ${1//,/ }; do
    [[ $bus == - ]] || found+=("$(device nvidia.com/gpu "$(gpu_uuid "$bus")" "$(node_of_bus "$bus")")")
  done
  for bus in ${2//,/ }; do
    [[ $bus == - ]] || found+=("$(device example.com/rdma "0000:$bus:00.0" "$(node_of_bus "$bus")")")
  done
  join ', ' "${found[@]}"
}

answer_of() { # one pod of List's reply
  local namespace=$1 pod=$2 container=$4 cpus=$5 node=$6 size=$7 text
  text="{\"name\": \"$container\", \"devices\": [$(devices "$8" "$9")]"
  [[ $cpus == - ]] || text+=", \"cpuIds\": [$(cpu_ids "$cpus")]"
  [[ $size == - ]] || text+=", \"memory\": [{\"memoryType\": \"memory\", \"size\": $((size * gib)), $(topology "$node")}]"
  echo "{\"name\": \"$pod\", \"namespace\": \"$namespace\", \"containers\": [$text}]}"
}

write_answers() {
  local pod replies=()
  for pod in "${pods[@]}"; do
    # shellcheck disable=SC2086  # a row is its words
    replies+=("$(answer_of $pod)")
  done
  cat >answers.json <<JSON
{"list": {"podResources": [
$(join $',\n' "${replies[@]}")
]},
"allocatable": {
"cpuIds": [$(cpu_ids 1-31,33-63)],
"devices": [$(devices 13,14,23,24,83,84,93,94 15,25,85,95)],
"memory": [
{"memoryType": "memory", "size": $((247 * gib)), $(topology 0)},
{"memoryType": "memory", "size": $((247 * gib)), $(topology 1)},
{"memoryType": "hugepages-1Gi", "size": $((huge_pages * gib)), $(topology 0)},
{"memoryType": "hugepages-1Gi", "size": $((huge_pages * gib)), $(topology 1)}
]}}
JSON
}

table() { # TOTAL RESERVED-BY-SYSTEM ALLOCATABLE HELD, in GiB
  printf '{"total":%d,"systemReserved":%d,"allocatable":%d,"reserved":%d,"free":%d}' \
    $(($1 * gib)) $(($2 * gib)) $(($3 * gib)) $(($4 * gib)) $((($3 - $4) * gib))
}

machine_state() { # NODE ASSIGNMENTS HELD
  # Of all memory, what is set aside as huge pages is not allocatable as "memory".
  printf '"%d":{"numberOfAssignments":%d,"memoryMap":{"hugepages-1Gi":%s,"memory":%s},"cells":[%d]}' \
    "$1" "$2" "$(table "$huge_pages" 0 "$huge_pages" 0)" \
    "$(table 256 1 $((256 - huge_pages - 1)) "$3")" "$1"
}

gpu_ids() { # BUSES
  local bus
  for bus in ${1//,/ }; do echo "\"$(gpu_uuid "$bus")\""; done
}
nic_ids() { # BUSES
  local bus
  for bus in ${1//,/ }; do echo "\"0000:$bus:00.0\""; done
}

registered() {
  # shellcheck disable=SC2046  # one word for each id
  printf '"nvidia.com/gpu":[%s],"example.com/rdma":[%s]' \
    "$(join , $(gpu_ids 13,14,23,24,83,84,93,94))" "$(join , $(nic_ids 15,25,85,95))"
}

# The kubelet's note of who has which devices, one line for each container and resource. AllocResp
# is what the plugin answered, as it went over the wire: here nothing.
checkpoint_entries() { # UID CONTAINER GPUS NICS
  local uid=$1 container=$2
  entry() { # RESOURCE NODE IDS...
    printf '{"PodUID":"%s","ContainerName":"%s","ResourceName":"%s","DeviceIDs":{"%d":[%s]},"AllocResp":""}\n' \
      "$uid" "$container" "$1" "$2" "$(join , "${@:3}")"
  }
  # shellcheck disable=SC2046  # one word for each id
  if [[ $3 != - ]]; then entry nvidia.com/gpu "$(node_of_bus "${3%%,*}")" $(gpu_ids "$3"); fi
  # shellcheck disable=SC2046
  if [[ $4 != - ]]; then entry example.com/rdma "$(node_of_bus "${4%%,*}")" $(nic_ids "$4"); fi
}

write_state() {
  local row cpu=() memory=() devices=() held=(0 0) count=(0 0) fields
  for row in "${pods[@]}"; do
    read -ra fields <<<"$row"
    local uid
    uid=$(uid_of "${fields[2]}")
    [[ ${fields[4]} == - ]] || cpu+=("\"$uid\":{\"${fields[3]}\":\"${fields[4]}\"}")
    mapfile -t -O "${#devices[@]}" devices \
      < <(checkpoint_entries "$uid" "${fields[3]}" "${fields[7]}" "${fields[8]}")
    [[ ${fields[6]} != - ]] || continue
    memory+=("\"$uid\":{\"${fields[3]}\":[{\"numaAffinity\":[${fields[5]}],\"type\":\"memory\",\"size\":$((fields[6] * gib))}]}")
    held[fields[5]]=$((held[fields[5]] + fields[6]))
    count[fields[5]]=$((count[fields[5]] + 1))
  done
  echo "{\"policyName\":\"static\",\"defaultCpuSet\":\"0,15,32,47\",\"entries\":{$(join , "${cpu[@]}")},\"checksum\":1}" \
    >var/lib/kubelet/cpu_manager_state
  echo "{\"policyName\":\"Static\",\"machineState\":{$(machine_state 0 "${count[0]}" "${held[0]}"),$(machine_state 1 "${count[1]}" "${held[1]}")},\"entries\":{$(join , "${memory[@]}")},\"checksum\":1}" \
    >var/lib/kubelet/memory_manager_state
  echo "{\"Data\":{\"PodDeviceEntries\":[$(join , "${devices[@]}")],\"RegisteredDevices\":{$(registered)}},\"Checksum\":1}" \
    >var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
}

write_container() { # a row: its log folder, the link to its log, its cgroup
  local uid id slice cpus=$5 nodes=$6 resident
  uid=$(uid_of "$3") id=$(container_id "$3")
  mkdir -p "var/log/pods/$1_$2_$uid/$4"
  ln -s "/var/log/pods/$1_$2_$uid/$4/0.log" "var/log/containers/$2_$1_$4-$id.log"
  slice=kubepods-pod${uid//-/_}.slice
  if [[ $cpus == - ]]; then
    cpus=0,15,32,47 nodes=0-1
    slice=kubepods-burstable.slice/kubepods-burstable-pod${uid//-/_}.slice
  fi
  slice=sys/fs/cgroup/kubepods.slice/$slice/cri-containerd-$id.scope
  mkdir -p "$slice"
  echo "$cpus" >"$slice/cpuset.cpus.effective"
  echo "$nodes" >"$slice/cpuset.mems.effective"
  resident=$(($([[ $7 == - ]] && echo 1 || echo "$7") * gib / 2))
  if [[ $nodes == 1 ]]; then echo "anon N0=0 N1=$resident"; else echo "anon N0=$resident N1=0"; fi \
    >"$slice/memory.numa_stat"
}

lay_down_kubelet() {
  local pod
  mkdir -p proc/4242 var/lib/kubelet/{pod-resources,device-plugins} var/log/{pods,containers} sys/fs/cgroup/kubepods.slice
  printf 'kubelet\0--config=/var/lib/kubelet/config.yaml\0' >proc/4242/cmdline
  echo kubelet >proc/4242/comm
  cat >var/lib/kubelet/config.yaml <<'YAML'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
memoryManagerPolicy: Static
topologyManagerPolicy: best-effort
topologyManagerScope: container
reservedSystemCPUs: "0,32"
systemReserved: {memory: 1948Mi}
evictionHard: {memory.available: 100Mi}
reservedMemory:
- {numaNode: 0, limits: {memory: 1Gi}}
- {numaNode: 1, limits: {memory: 1Gi}}
YAML
  echo "cpuset memory" >sys/fs/cgroup/cgroup.controllers
  echo 0-63 >sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective
  echo 0-1 >sys/fs/cgroup/kubepods.slice/cpuset.mems.effective
  write_state
  for pod in "${pods[@]}"; do
    # shellcheck disable=SC2086  # a row is its words
    write_container $pod
  done
  write_answers
}
