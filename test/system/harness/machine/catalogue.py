"""The machines that scenarios run on. The kubelet can run on each with all of its managers static.

Memory is as much as real servers have, because the kubelet compares it with what the real host uses:
on a small made-up machine it would see memory pressure.
"""

from dataclasses import replace

from .machine import Machine
from .numa import NumaNode
from .pci import AMD_GPU, NIC, NVIDIA_GPU, PciDevice, switch

_MEMORY_MIB = 128 * 1024


def _two_socket() -> Machine:
    """Four GPUs on one socket and two on the other, and a NIC on each; huge pages, unevenly."""
    return Machine(
        numa_nodes=(
            NumaNode(0, socket=0, cores=8, memory_mib=_MEMORY_MIB, huge_pages_2m=1024, huge_pages_1g=4),
            NumaNode(1, socket=1, cores=8, memory_mib=_MEMORY_MIB, huge_pages_2m=512),
        ),
        pci=(
            *switch(0x10, 0, NVIDIA_GPU, NVIDIA_GPU, NIC),
            *switch(0x20, 0, NVIDIA_GPU, NVIDIA_GPU),
            *switch(0x80, 1, NVIDIA_GPU, NVIDIA_GPU, NIC),
        ),
    )


def _snc() -> Machine:
    """Sub-NUMA clustering: two sockets of two NUMA nodes each; the outer nodes have two GPUs and a NIC."""
    return Machine(
        numa_nodes=tuple(
            NumaNode(id, socket=id // 2, cores=4, memory_mib=_MEMORY_MIB // 2, huge_pages_2m=256)
            for id in range(4)
        ),
        pci=(
            *switch(0x10, 0, NVIDIA_GPU, NVIDIA_GPU, NIC),
            *switch(0x40, 1, NVIDIA_GPU),
            *switch(0x80, 2, NVIDIA_GPU),
            *switch(0xC0, 3, NVIDIA_GPU, NVIDIA_GPU, NIC),
        ),
    )


def _eight() -> Machine:
    """As many NUMA nodes as the Topology Manager takes; AMD GPUs on every other one; two L3s in each."""
    # Each NUMA node has 0x18 of the buses.
    gpus = [switch(0x10 + 0x18 * node, node, AMD_GPU, AMD_GPU) for node in (1, 3, 4, 6)]
    return Machine(
        numa_nodes=tuple(
            NumaNode(id, socket=id // 4, cores=4, memory_mib=_MEMORY_MIB // 4) for id in range(8)
        ),
        l3_caches=2,
        pci=tuple(device for pair in gpus for device in pair),
    )


def _no_smt() -> Machine:
    """One thread for each core; one GPU on each socket."""
    return Machine(
        numa_nodes=tuple(NumaNode(id, socket=id, cores=8, memory_mib=_MEMORY_MIB) for id in range(2)),
        threads_per_core=1,
        pci=(*switch(0x10, 0, NVIDIA_GPU, NIC), *switch(0x80, 1, NVIDIA_GPU, NIC)),
    )


def _virtual() -> Machine:
    """A virtual machine whose hypervisor hides where its GPUs are: nobody says their NUMA node."""
    return Machine(
        numa_nodes=tuple(NumaNode(id, socket=id, cores=4, memory_mib=_MEMORY_MIB) for id in range(2)),
        siblings_adjacent=True,
        pci=tuple(PciDevice(f"0000:00:{slot:02x}.0", NVIDIA_GPU, -1) for slot in range(4, 8)),
    )


def _cxl() -> Machine:
    """A third NUMA node that is memory alone, behind the first socket."""
    sockets = tuple(NumaNode(id, socket=id, cores=4, memory_mib=_MEMORY_MIB) for id in range(2))
    return Machine(
        numa_nodes=(*sockets, NumaNode(2, socket=0, cores=0, memory_mib=_MEMORY_MIB)),
        pci=(*switch(0x10, 0, NVIDIA_GPU), *switch(0x80, 1, NVIDIA_GPU)),
    )


def _sparse() -> Machine:
    """The ids of the NUMA nodes have a gap, as on POWER: 0 and 8.

    Not for prefer-closest-numa-nodes: the kubelet takes ids for places in the rows of distances, and
    crashes at the first admission (index out of range, Kubernetes 1.37).
    """
    return Machine(
        numa_nodes=tuple(
            NumaNode(8 * socket, socket=socket, cores=4, memory_mib=_MEMORY_MIB) for socket in range(2)
        ),
        pci=(*switch(0x10, 0, NVIDIA_GPU), *switch(0x80, 8, NVIDIA_GPU)),
    )


def _offline() -> Machine:
    """Two cores of the second socket are switched off."""
    return Machine(
        numa_nodes=tuple(NumaNode(id, socket=id, cores=4, memory_mib=_MEMORY_MIB) for id in range(2)),
        offline=frozenset((4, 12, 6, 14)),
        pci=(*switch(0x10, 0, NVIDIA_GPU), *switch(0x80, 1, NVIDIA_GPU)),
    )


def _misled() -> Machine:
    """Two sockets whose second GPU is claimed for the wrong one by its device plugin."""
    first = switch(0x10, 0, NVIDIA_GPU, NVIDIA_GPU)
    first[-1] = replace(first[-1], claimed_numa_node=1)
    return Machine(
        numa_nodes=tuple(NumaNode(id, socket=id, cores=4, memory_mib=_MEMORY_MIB) for id in range(2)),
        pci=(*first, *switch(0x80, 1, NVIDIA_GPU, NVIDIA_GPU)),
    )


def _large() -> Machine:
    """Room for more pods with CPUs of their own than a kubelet takes."""
    gpus = [switch(0x10 + 0x40 * socket, socket, *[NVIDIA_GPU] * 4) for socket in range(2)]
    return Machine(
        numa_nodes=tuple(NumaNode(id, socket=id, cores=64, memory_mib=4 * _MEMORY_MIB) for id in range(2)),
        pci=tuple(device for four in gpus for device in four),
    )


MACHINES: dict[str, Machine] = {
    "two-socket": _two_socket(),
    "snc": _snc(),
    "eight": _eight(),
    "no-smt": _no_smt(),
    "virtual": _virtual(),
    "cxl": _cxl(),
    "sparse": _sparse(),
    "offline": _offline(),
    "misled": _misled(),
    "large": _large(),
}
