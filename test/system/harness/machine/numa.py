"""NUMA nodes: sys/devices/system/node, sys/kernel/mm/hugepages and proc/meminfo."""

from collections.abc import Sequence
from dataclasses import dataclass

from .cpus import Cpu
from .tree import Tree, format_list, format_mask

_FOLDER = "sys/devices/system/node"
_HUGE_PAGES = "sys/kernel/mm/hugepages"
_KIB_PER_MIB = 1024


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node as it was installed; one without cores is memory alone (CXL, HBM)."""

    id: int
    socket: int
    cores: int
    memory_mib: int
    huge_pages_2m: int = 0
    huge_pages_1g: int = 0

    def huge_pages(self) -> dict[int, int]:
        """How many pages there are, by their size in KiB."""
        return {2048: self.huge_pages_2m, 1048576: self.huge_pages_1g}


def distance(one: NumaNode, other: NumaNode) -> int:
    """As firmware usually says it; 10 is the kernel's own word for local."""
    if one.id == other.id:
        return 10
    beyond_memory = 2 if 0 in (one.cores, other.cores) else 0  # behind a CXL link
    return (12 if one.socket == other.socket else 21) + beyond_memory


def write_numa_nodes(tree: Tree, nodes: Sequence[NumaNode], cpus: Sequence[Cpu]) -> None:
    everything = format_list(node.id for node in nodes)
    for name in ("online", "possible", "has_memory", "has_normal_memory"):
        tree.put(f"{_FOLDER}/{name}", everything)
    tree.put(f"{_FOLDER}/has_cpu", format_list(node.id for node in nodes if node.cores > 0))
    for node in nodes:
        _write_node(tree, node, nodes, cpus)
    for kibibytes in nodes[0].huge_pages():
        total = sum(node.huge_pages()[kibibytes] for node in nodes)
        folder = f"{_HUGE_PAGES}/hugepages-{kibibytes}kB"
        _write_huge_pages(tree, folder, total)
        tree.put_all(
            folder, {"resv_hugepages": 0, "nr_hugepages_mempolicy": total, "nr_overcommit_hugepages": 0}
        )
    tree.put("proc/meminfo", _format_meminfo(nodes))


def _write_node(tree: Tree, node: NumaNode, nodes: Sequence[NumaNode], cpus: Sequence[Cpu]) -> None:
    folder = f"{_FOLDER}/node{node.id}"
    own = [cpu.id for cpu in cpus if cpu.numa_node == node.id]
    tree.put_all(folder, {"cpulist": format_list(own), "cpumap": format_mask(own, len(cpus))})
    # One value for each online node, in their order; not one for each possible id.
    tree.put(f"{folder}/distance", " ".join(str(distance(node, other)) for other in nodes))
    tree.put(f"{folder}/meminfo", _format_node_meminfo(node))
    for kibibytes, pages in node.huge_pages().items():
        _write_huge_pages(tree, f"{folder}/hugepages/hugepages-{kibibytes}kB", pages)
    tree.put_bytes(f"{folder}/uevent", b"")
    tree.link(f"{folder}/subsystem", "sys/bus/node")
    tree.link(f"sys/bus/node/devices/node{node.id}", folder)
    for cpu in own:
        tree.link(f"{folder}/cpu{cpu}", f"sys/devices/system/cpu/cpu{cpu}")


def _write_huge_pages(tree: Tree, folder: str, pages: int) -> None:
    tree.put_all(folder, {"nr_hugepages": pages, "free_hugepages": pages, "surplus_hugepages": 0})


def _total_kib(node: NumaNode) -> int:
    return node.memory_mib * _KIB_PER_MIB


def _free_kib(node: NumaNode) -> int:
    """The kernel and its caches use a thirty-second part; what huge pages hold isn't free either."""
    huge = sum(kibibytes * pages for kibibytes, pages in node.huge_pages().items())
    return _total_kib(node) * 31 // 32 - huge


def _format_node_meminfo(node: NumaNode) -> str:
    total, free = _total_kib(node), _free_kib(node)
    lines = [
        f"Node {node.id} {name + ':':<13} {kib:>10} kB"
        for name, kib in (("MemTotal", total), ("MemFree", free), ("MemUsed", total - free))
    ]
    lines += [
        f"Node {node.id} {name + ':':<16} {pages:>7}"
        for name, pages in (
            ("HugePages_Total", node.huge_pages_2m),
            ("HugePages_Free", node.huge_pages_2m),
            ("HugePages_Surp", 0),
        )
    ]
    return "\n".join(lines)


def _format_meminfo(nodes: Sequence[NumaNode]) -> str:
    total = sum(_total_kib(node) for node in nodes)
    free = sum(_free_kib(node) for node in nodes)
    pages = sum(node.huge_pages_2m for node in nodes)
    amounts = {"MemTotal": total, "MemFree": free, "MemAvailable": free, "Buffers": 0, "Cached": 0}
    amounts |= {"SwapCached": 0, "SwapTotal": 0, "SwapFree": 0}
    counts = {"HugePages_Total": pages, "HugePages_Free": pages, "HugePages_Rsvd": 0, "HugePages_Surp": 0}
    lines = [f"{name + ':':<15} {kib:>8} kB" for name, kib in amounts.items()]
    lines += [f"{name + ':':<16} {count:>7}" for name, count in counts.items()]
    return "\n".join(lines + ["Hugepagesize:       2048 kB"])
