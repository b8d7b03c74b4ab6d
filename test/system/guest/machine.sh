# shellcheck shell=bash
# The emulated machine, sourced by boot.sh: what QEMU is told, and what must therefore be seen inside.
# Both come from the same few values, so that an expectation cannot drift from the machine.

guest_cpus=("0-3" "4-7")    # of NUMA node 0 and 1: one socket each, 2 cores with 2 threads
guest_isolated=7            # isolcpus=
guest_memory_mib=(768 512)  # different, so that nodes which are mixed up show
guest_huge_pages=(8 4)      # of 2 MiB
guest_near=10
guest_far=21
# Each behind a PCI expander of its own: "root bus number, NUMA node, QEMU's device, kind". A
# display controller stands for a GPU. A root port is slot 0 of such a bus, what it carries sits on the next bus: 0x20 gives 0000:21:00.0.
guest_devices=(
  "0x20 0 bochs-display gpu"
  "0x28 0 e1000e nic"
  "0x40 1 bochs-display gpu"
  "0x48 1 e1000e nic"
)

guest_append() {
  printf 'console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on isolcpus=%s ' "$guest_isolated"
  printf 'hugepagesz=2M hugepages=0:%s,1:%s' "${guest_huge_pages[@]}"
}

# One argument a line.
guest_qemu_arguments() {
  local node device bus on model
  printf '%s\n' -accel tcg,thread=single -machine q35 -cpu max,vendor=GenuineIntel -smp 8,sockets=2,cores=2,threads=2 \
    -m "$((guest_memory_mib[0] + guest_memory_mib[1]))M"
  for node in 0 1; do
    printf '%s\n' -object "memory-backend-ram,id=memory$node,size=${guest_memory_mib[node]}M" \
      -numa "node,nodeid=$node,cpus=${guest_cpus[node]},memdev=memory$node"
  done
  printf '%s\n' -numa "dist,src=0,dst=1,val=$guest_far"
  for device in "${guest_devices[@]}"; do
    read -r bus on model _ <<< "$device"
    printf '%s\n' -device "pxb-pcie,id=bus$bus,bus_nr=$((bus)),numa_node=$on,bus=pcie.0" \
      -device "pcie-root-port,id=port$bus,bus=bus$bus,chassis=$((bus)),slot=0" \
      -device "$model,bus=port$bus"
  done
}

# What must be seen inside, one fact a line: what the guest's kernel says (see inside/hardware.sh) and what the agent
# says, brought to the same words (see hardware_test.sh).
guest_expected_facts() {
  local node device bus on kind
  for node in 0 1; do
    printf 'node %s cpus %s\n' "$node" "${guest_cpus[node]}"
    printf 'node %s hugepages-2048kB %s\n' "$node" "${guest_huge_pages[node]}"
    printf 'core %s-%s socket %s\n' $((node * 4)) $((node * 4 + 1)) "$node" $((node * 4 + 2)) $((node * 4 + 3)) "$node"
  done
  printf 'node 0 distances %s %s\n' "$guest_near" "$guest_far"
  printf 'node 1 distances %s %s\n' "$guest_far" "$guest_near"
  printf 'isolated %s\n' "$guest_isolated"
  for device in "${guest_devices[@]}"; do
    read -r bus on _ kind <<< "$device"
    printf 'device 0000:%02x:00.0 %s node %s\n' "$((bus + 1))" "$kind" "$on"
  done
}
