"""A machine as a whole: the facts that a scenario compares with, and the tree that programs read."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Optional

from .cpus import Cpu, write_cpus
from .numa import NumaNode, distance, write_numa_nodes
from .pci import PciDevice, write_pci
from .tree import Tree


class Advertised(NamedTuple):
    """A device as its plugin tells the kubelet."""

    id: str
    numa_node: Optional[int]  # None: the plugin does not say


@dataclass(frozen=True)
class Machine:
    """NUMA nodes are given in the order of their ids, which is that of their CPUs too."""

    numa_nodes: tuple[NumaNode, ...]
    threads_per_core: int = 2
    # Firmware counts one thread of each core first, then the others; hypervisors count core by core.
    siblings_adjacent: bool = False
    l3_caches: int = 1  # in each NUMA node with cores
    offline: frozenset[int] = frozenset()  # CPUs
    pci: tuple[PciDevice, ...] = ()  # bridges too

    @functools.cached_property
    def installed_cpus(self) -> tuple[Cpu, ...]:
        """In the order of their ids."""
        cpus: list[Cpu] = []
        for index, node in enumerate(self.numa_nodes):
            before = self.numa_nodes[:index]
            first_core = sum(other.cores for other in before)
            first_core_in_socket = sum(other.cores for other in before if other.socket == node.socket)
            for core in range(node.cores):
                threads = self._threads_of(first_core + core)
                online = tuple(thread for thread in threads if thread not in self.offline)
                core_id = first_core_in_socket + core
                l3 = index * self.l3_caches + core * self.l3_caches // node.cores
                cpus += [Cpu(id, node.socket, node.id, core_id, l3, online, id in online) for id in threads]
        return tuple(sorted(cpus, key=lambda cpu: cpu.id))

    @property
    def cpus(self) -> list[Cpu]:
        """Those that are online."""
        return [cpu for cpu in self.installed_cpus if cpu.online]

    @property
    def numa_node_ids(self) -> list[int]:
        return [node.id for node in self.numa_nodes]

    @property
    def nics(self) -> list[PciDevice]:
        return [device for device in self.pci if device.kind == "nic"]

    def numa_node(self, node_id: int) -> NumaNode:
        return next(node for node in self.numa_nodes if node.id == node_id)

    def cpus_of(self, node_id: int) -> list[int]:
        """The ids of a NUMA node's online CPUs."""
        return [cpu.id for cpu in self.cpus if cpu.numa_node == node_id]

    def siblings_of(self, cpu: int) -> tuple[int, ...]:
        """The online threads of a CPU's core, itself among them."""
        return self.installed_cpus[cpu].siblings

    def distance(self, one: int, other: int) -> int:
        return distance(self.numa_node(one), self.numa_node(other))

    def device_plugins(self) -> dict[str, list[Advertised]]:
        """What the machine's device plugins advertise, by resource."""
        plugins: dict[str, list[Advertised]] = {}
        for device in self.pci:
            if device.model.resource:
                plugins.setdefault(device.model.resource, []).append(_advertise(device))
        return plugins

    def write(self, root: Path) -> None:
        """Writes root/sys, to be mounted over all of /sys, and root/proc/{meminfo,cpuinfo,driver}.

        The real cgroups belong on root/sys/fs/cgroup before root/sys is mounted.
        """
        tree = Tree(root)
        write_cpus(tree, self.installed_cpus)
        write_numa_nodes(tree, self.numa_nodes, self.installed_cpus)
        write_pci(tree, self.pci, self.installed_cpus)
        _write_rest(tree)

    def _threads_of(self, core: int) -> range:
        """The CPU ids of the core-th of all cores."""
        if self.siblings_adjacent:
            return range(core * self.threads_per_core, (core + 1) * self.threads_per_core)
        cores = sum(node.cores for node in self.numa_nodes)
        return range(core, cores * self.threads_per_core, cores)


def _advertise(device: PciDevice) -> Advertised:
    if device.claimed_numa_node is not None:
        return Advertised(device.plugin_id, device.claimed_numa_node)
    return Advertised(device.plugin_id, device.numa_node if device.numa_node >= 0 else None)


def _write_rest(tree: Tree) -> None:
    """What the kubelet looks for in sysfs besides."""
    tree.folder("sys/fs/cgroup")  # the place for the real one
    tree.folder("sys/block")
    tree.put("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", 2097152)
    dmi = "sys/devices/virtual/dmi/id"
    tree.put_all(dmi, {"sys_vendor": "Plumbline", "product_name": "Made-up machine"})
    tree.put(f"{dmi}/product_uuid", "00000000-0000-4000-8000-000000000000")
    tree.link("sys/class/dmi/id", dmi)
