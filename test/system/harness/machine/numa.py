"""NUMA nodes: sys/devices/system/node, sys/kernel/mm/hugepages and proc/meminfo."""

from collections.abc import Sequence
from dataclasses import dataclass

from .cpus import Cpu, ids
from .tree import Tree, format_list, format_mask

_FOLDER = "sys/devices/system/node"
_HUGE_PAGE_SIZES = (2048, 1048576)  # KiB; x86 has no others
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

    def huge_pages(self, kibibytes: int) -> int:
        """How many there are of a size."""
        return {2048: self.huge_pages_2m, 1048576: self.huge_pages_1g}[kibibytes]


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
    _write_huge_pages(tree, "sys/kernel/mm/hugepages", nodes)
    tree.put("proc/meminfo", _format_meminfo(nodes))


def _write_node(tree: Tree, node: NumaNode, nodes: Sequence[NumaNode], cpus: Sequence[Cpu]) -> None:
    folder = f"{_FOLDER}/node{node.id}"
    own = ids(cpus, lambda cpu: cpu.numa_node == node.id)
    tree.put_all(folder, {"cpulist": format_list(own), "cpumap": format_mask(own, len(cpus))})
    # One value for each online node, in their order; not one for each possible id.
    tree.put(f"{folder}/distance", " ".join(str(distance(node, other)) for other in nodes))
    tree.put(f"{folder}/meminfo", _format_node_meminfo(node))
    _write_huge_pages(tree, f"{folder}/hugepages", [node])
    tree.link(f"{folder}/subsystem", "sys/bus/node")
    tree.link(f"sys/bus/node/devices/node{node.id}", folder)
    for cpu in cpus:
        if cpu.numa_node == node.id:  # also if it is offline
            tree.link(f"{folder}/cpu{cpu.id}", f"sys/devices/system/cpu/cpu{cpu.id}")


def _write_huge_pages(tree: Tree, folder: str, nodes: Sequence[NumaNode]) -> None:
    for kibibytes in _HUGE_PAGE_SIZES:
        pages = sum(node.huge_pages(kibibytes) for node in nodes)
        values = {"nr_hugepages": pages, "free_hugepages": pages, "surplus_hugepages": 0}
        tree.put_all(f"{folder}/hugepages-{kibibytes}kB", values)


def _total_kib(node: NumaNode) -> int:
    return node.memory_mib * _KIB_PER_MIB


def _free_kib(node: NumaNode) -> int:
    """The kernel and its caches use a thirty-second part; what huge pages hold isn't free either."""
    huge = sum(kibibytes * node.huge_pages(kibibytes) for kibibytes in _HUGE_PAGE_SIZES)
    return _total_kib(node) * 31 // 32 - huge


def _format_node_meminfo(node: NumaNode) -> str:
    total, free, pages = _total_kib(node), _free_kib(node), node.huge_pages_2m
    lines = _format_lines(
        kibibytes={"MemTotal": total, "MemFree": free, "MemUsed": total - free},
        pages={"HugePages_Total": pages, "HugePages_Free": pages, "HugePages_Surp": 0},
    )
    return "\n".join(f"Node {node.id} {line}" for line in lines)


def _format_meminfo(nodes: Sequence[NumaNode]) -> str:
    total = sum(_total_kib(node) for node in nodes)
    free = sum(_free_kib(node) for node in nodes)
    pages = sum(node.huge_pages_2m for node in nodes)
    lines = _format_lines(
        kibibytes={
            "MemTotal": total,
            "MemFree": free,
            "MemAvailable": free,
            "Buffers": 0,
            "Cached": 0,
            "SwapTotal": 0,
            "SwapFree": 0,
        },
        pages={"HugePages_Total": pages, "HugePages_Free": pages, "HugePages_Rsvd": 0, "HugePages_Surp": 0},
    )
    return "\n".join(lines + _format_lines({"Hugepagesize": 2048}, {}))


def _format_lines(kibibytes: dict[str, int], pages: dict[str, int]) -> list[str]:
    lines = [f"{name + ':':<16}{amount:>8} kB" for name, amount in kibibytes.items()]
    return lines + [f"{name + ':':<16}{count:>8}" for name, count in pages.items()]
