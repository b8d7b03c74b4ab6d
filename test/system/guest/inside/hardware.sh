# shellcheck shell=dash
# Run by init: what the kernel and the agent see of the machine.

# The kernel's own word, without the agent: one fact a line.
facts() {
  for node in /sys/devices/system/node/node[0-9]*; do
    id=${node##*/node}
    echo "node $id cpus $(cat "$node/cpulist")"
    echo "node $id distances $(cat "$node/distance")"
    echo "node $id hugepages-2048kB $(cat "$node/hugepages/hugepages-2048kB/nr_hugepages")"
    echo "node $id memory-kib $(awk '/MemTotal/ {print $4}' "$node/meminfo")"
  done
  echo "isolated $(cat /sys/devices/system/cpu/isolated)"
  for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
    topology=$cpu/topology
    echo "core $(cat "$topology/thread_siblings_list") socket $(cat "$topology/physical_package_id")"
  done
  for device in /sys/bus/pci/devices/*; do
    case $(cat "$device/class") in
      0x02*) kind=nic ;;
      0x03*) kind=gpu ;;
      *) continue ;;
    esac
    echo "device ${device##*/} $kind node $(cat "$device/numa_node")"
  done
}

section facts facts
section picture plumbline-agent --dry-run --ascii
section json plumbline-agent --dry-run -o json
