# sys/ and proc/ of the made-up node, below the working directory.
# shellcheck shell=bash

cores_per_socket=16
node_kib=$((256 << 20)) # MemTotal of a node
huge_pages=8            # of 1 GiB, on each node

# The threads of a core are 32 apart, as Linux numbers them: core 0 has CPUs 0 and 32.
mask_of_socket() { echo $((0xffff0000ffff << (16 * $1))); }
list_of_socket() { echo "$((16 * $1))-$((16 * $1 + 15)),$((16 * $1 + 32))-$((16 * $1 + 47))"; }
write_mask() { printf '%08x,%08x\n' $((($1 >> 32) & 0xffffffff)) $(($1 & 0xffffffff)) >"$2"; }

lay_down_cpus() {
  local cpus=sys/devices/system/cpu cpu core socket package threads folder
  mkdir -p $cpus/cpu{0..63}/{topology,cache/index3}
  for ((cpu = 0; cpu < 64; ++cpu)); do
    core=$((cpu % 32)) socket=$((cpu % 32 / cores_per_socket))
    package=$((0xffff0000ffff << (16 * socket))) threads=$(((1 << core) | (1 << (core + 32))))
    folder=$cpus/cpu$cpu
    echo $((core % cores_per_socket)) >$folder/topology/core_id
    echo $socket >$folder/topology/physical_package_id
    write_mask $threads $folder/topology/core_cpus
    write_mask $threads $folder/topology/thread_siblings
    write_mask $package $folder/topology/package_cpus
    write_mask $package $folder/topology/core_siblings
    echo "$core,$((core + 32))" >$folder/topology/core_cpus_list
    echo "$core,$((core + 32))" >$folder/topology/thread_siblings_list
    echo "$((16 * socket))-$((16 * socket + 15)),$((16 * socket + 32))-$((16 * socket + 47))" \
      >$folder/topology/package_cpus_list
    echo 3 >$folder/cache/index3/level
    echo Unified >$folder/cache/index3/type
    echo 49152K >$folder/cache/index3/size
    echo 64 >$folder/cache/index3/coherency_line_size
    write_mask $package $folder/cache/index3/shared_cpu_map
  done
  for name in online possible present; do echo 0-63 >$cpus/$name; done
  for name in offline isolated; do echo >$cpus/$name; done
}

lay_down_nodes() {
  local nodes=sys/devices/system/node node folder
  for node in 0 1; do
    folder=$nodes/node$node
    mkdir -p $folder/hugepages/hugepages-1048576kB
    list_of_socket $node >$folder/cpulist
    write_mask "$(mask_of_socket $node)" $folder/cpumap
    if ((node == 0)); then echo "10 21"; else echo "21 10"; fi >$folder/distance
    printf 'Node %d MemTotal: %d kB\nNode %d MemFree: %d kB\n' \
      $node $node_kib $node $((node_kib * (9 - 4 * node) / 16)) >$folder/meminfo
    echo $huge_pages >$folder/hugepages/hugepages-1048576kB/nr_hugepages
    echo $huge_pages >$folder/hugepages/hugepages-1048576kB/free_hugepages
    echo 0 >$folder/hugepages/hugepages-1048576kB/surplus_hugepages
  done
  for name in online possible has_cpu has_memory has_normal_memory; do echo 0-1 >$nodes/$name; done
}

# pci_function FOLDER VENDOR DEVICE CLASS NODE: one function, also linked from the bus.
pci_function() {
  mkdir -p "$1"
  echo "0x$2" >"$1/vendor"
  echo "0x$3" >"$1/device"
  echo "0x$4" >"$1/class"
  echo "$5" >"$1/numa_node"
  list_of_socket "$5" >"$1/local_cpulist"
  write_mask "$(mask_of_socket "$5")" "$1/local_cpus"
  ln -s "../../../../${1}" "sys/bus/pci/devices/${1##*/}"
}

driver() { ln -s "/sys/bus/pci/drivers/$2" "$1/driver"; }

gpu_uuid() { echo "GPU-5eed5eed-0000-4000-8000-0000000000$1"; } # by its bus

gpus=0
nics=0
gpu() { # FOLDER NODE
  pci_function "$1" 10de 2330 030200 "$2"
  driver "$1" nvidia
  local address=${1##*/}
  mkdir -p "proc/driver/nvidia/gpus/$address"
  printf 'Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %d\n' \
    "$(gpu_uuid "${address:5:2}")" "$address" $((gpus++)) \
    >"proc/driver/nvidia/gpus/$address/information"
}

nic() { # FOLDER NODE VENDOR DEVICE DRIVER
  pci_function "$1" "$3" "$4" 020000 "$2"
  driver "$1" "$5"
  mkdir -p "$1/net/eth$nics"
  [[ $5 != mlx5_core ]] || mkdir -p "$1/infiniband/mlx5_$nics"
  nics=$((nics + 1))
}

# pcie_switch HOST PORT BUS NODE: below root port HOST:PORT.0, two GPUs and a NIC.
pcie_switch() {
  local bus=$((16#$3)) below address i
  below=sys/devices/pci0000:$1/0000:$1:$2.0
  pci_function "$below" 8086 352a 060400 "$4"
  printf -v address '0000:%02x:00.0' $bus
  below+=/$address
  pci_function "$below" 1000 c030 060400 "$4"
  for i in 0 1 2; do
    printf -v address '0000:%02x:%02x.0' $((bus + 1)) $i
    pci_function "$below/$address" 1000 c030 060400 "$4"
    printf -v address '%s/0000:%02x:00.0' "$below/$address" $((bus + 2 + i))
    if ((i < 2)); then gpu "$address" "$4"; else nic "$address" "$4" 15b3 1021 mlx5_core; fi
  done
}

lay_down_pci() {
  mkdir -p sys/bus/pci/{devices,drivers/{nvidia,mlx5_core,ixgbe}} sys/devices/pci0000:{10,80}
  pcie_switch 10 01 11 0
  pcie_switch 10 03 21 0
  nic sys/devices/pci0000:10/0000:10:05.0 0 8086 1563 ixgbe
  pcie_switch 80 01 81 1
  pcie_switch 80 03 91 1
}

lay_down_proc() {
  local cpu
  mkdir -p proc/sys/kernel/random
  echo 5eed5eed-0000-4000-8000-000000000001 >proc/sys/kernel/random/boot_id
  printf 'MemTotal: %d kB\nMemFree: %d kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n' \
    $((2 * node_kib)) $((node_kib * 14 / 16)) >proc/meminfo
  printf 'sysfs /sys sysfs rw 0 0\nproc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n' \
    >proc/mounts
  for ((cpu = 0; cpu < 64; ++cpu)); do
    printf 'processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: made up\nphysical id\t: %d\n\n' \
      $cpu $((cpu % 32 / cores_per_socket))
  done >proc/cpuinfo
  printf 'OSName: Linux\nOSRelease: 6.8.0\nHostName: gpu-demo\nArchitecture: x86_64\n' \
    >proc/hwloc-nofile-info
}
