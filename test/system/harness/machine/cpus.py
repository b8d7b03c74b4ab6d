"""CPUs: sys/devices/system/cpu and proc/cpuinfo."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .tree import Tree, format_list, format_mask

_FOLDER = "sys/devices/system/cpu"


@dataclass(frozen=True)
class Cpu:
    """A logical CPU that is installed, and its place."""

    id: int
    socket: int
    numa_node: int
    core: int  # as the kernel counts: anew in each socket
    l3: int  # the id of its L3 cache
    siblings: tuple[int, ...]  # the online threads of its core, itself among them
    online: bool = True


def ids(cpus: Sequence[Cpu], wanted: Callable[[Cpu], bool] = lambda cpu: True) -> list[int]:
    """The ids of the CPUs that are online and wanted: those that the kernel's sets hold."""
    return [cpu.id for cpu in cpus if cpu.online and wanted(cpu)]


def write_cpus(tree: Tree, cpus: Sequence[Cpu]) -> None:
    installed = format_list(cpu.id for cpu in cpus)
    offline = format_list(cpu.id for cpu in cpus if not cpu.online)
    tree.put_all(_FOLDER, {"possible": installed, "present": installed, "online": format_list(ids(cpus))})
    tree.put_all(_FOLDER, {"offline": offline, "isolated": "", "kernel_max": 8191})
    for cpu in cpus:
        _write_cpu(tree, cpu, cpus)
    paragraphs = (_describe(cpu, cpus) for cpu in cpus if cpu.online)
    tree.put("proc/cpuinfo", "\n".join(paragraphs).rstrip("\n"))


def _write_cpu(tree: Tree, cpu: Cpu, cpus: Sequence[Cpu]) -> None:
    folder = f"{_FOLDER}/cpu{cpu.id}"
    if cpu.id != 0:  # on x86 the first CPU cannot be switched off
        tree.put(f"{folder}/online", int(cpu.online))
    tree.link(f"{folder}/subsystem", "sys/bus/cpu")
    tree.link(f"{folder}/node{cpu.numa_node}", f"sys/devices/system/node/node{cpu.numa_node}")
    tree.link(f"sys/bus/cpu/devices/cpu{cpu.id}", folder)
    if cpu.online:
        _write_topology(tree, f"{folder}/topology", cpu, cpus)
        _write_caches(tree, f"{folder}/cache", cpu, cpus)


def _write_topology(tree: Tree, folder: str, cpu: Cpu, cpus: Sequence[Cpu]) -> None:
    tree.put_all(folder, {"physical_package_id": cpu.socket, "die_id": 0, "core_id": cpu.core})
    package = ids(cpus, lambda other: other.socket == cpu.socket)
    # thread_siblings and core_siblings are the older names.
    for name, members in (
        ("core_cpus", cpu.siblings),
        ("thread_siblings", cpu.siblings),
        ("die_cpus", package),
        ("package_cpus", package),
        ("core_siblings", package),
    ):
        tree.put_all(folder, {name: format_mask(members, len(cpus)), f"{name}_list": format_list(members)})


def _write_caches(tree: Tree, folder: str, cpu: Cpu, cpus: Sequence[Cpu]) -> None:
    shared_l3 = ids(cpus, lambda other: other.l3 == cpu.l3)
    own = cpu.siblings[0]  # core ids repeat, and caches are told apart by id
    for index, (level, kind, kibibytes, ways, cache, sharers) in enumerate(
        (
            (1, "Data", 48, 12, own, cpu.siblings),
            (1, "Instruction", 32, 8, own, cpu.siblings),
            (2, "Unified", 2048, 16, own, cpu.siblings),
            (3, "Unified", 32768, 16, cpu.l3, shared_l3),
        )
    ):
        line = 64  # bytes
        values = {
            "id": cache,
            "level": level,
            "type": kind,
            "size": f"{kibibytes}K",
            "ways_of_associativity": ways,
            "number_of_sets": kibibytes * 1024 // ways // line,
            "coherency_line_size": line,
            "physical_line_partition": 1,
            "shared_cpu_list": format_list(sharers),
            "shared_cpu_map": format_mask(sharers, len(cpus)),
        }
        tree.put_all(f"{folder}/index{index}", values)


def _describe(cpu: Cpu, cpus: Sequence[Cpu]) -> str:
    """A CPU's paragraph of proc/cpuinfo. From it the kubelet takes the number of sockets."""
    package = [other for other in cpus if other.online and other.socket == cpu.socket]
    facts = {
        "processor": cpu.id,
        "vendor_id": "GenuineIntel",
        "cpu family": 6,
        "model": 143,
        "model name": "Made-up CPU",
        "stepping": 8,
        "cpu MHz": "2000.000",
        "cache size": "32768 KB",
        "physical id": cpu.socket,
        "siblings": len(package),
        "core id": cpu.core,
        "cpu cores": len({other.core for other in package}),
        "apicid": cpu.id,
        "flags": "fpu lm ht",
        "address sizes": "46 bits physical, 57 bits virtual",
    }
    return "".join(f"{name}{_tabs(name)}: {value}\n" for name, value in facts.items())


def _tabs(name: str) -> str:
    """That bring the colons into one column, as the kernel has them."""
    return "\t" * max(1, 2 - len(name) // 8)
