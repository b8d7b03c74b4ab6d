"""PCI functions: sys/devices/pci*, sys/bus/pci, sys/class/net and drm, proc/driver/nvidia."""

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from .cpus import Cpu, ids
from .tree import Tree, format_list, format_mask


@dataclass(frozen=True)
class Model:
    """What a function is, and who drives it."""

    kind: str  # "gpu", "nic" or "bridge"
    name: str
    class_code: int
    vendor: int
    device: int
    driver: str
    resource: str = ""  # what its device plugin calls it; "" has none


NVIDIA_GPU = Model("gpu", "NVIDIA H100 80GB HBM3", 0x030200, 0x10DE, 0x2330, "nvidia", "nvidia.com/gpu")
AMD_GPU = Model("gpu", "AMD Instinct MI300X", 0x120000, 0x1002, 0x74A1, "amdgpu", "amd.com/gpu")
NIC = Model("nic", "ConnectX-7", 0x020000, 0x15B3, 0x1021, "mlx5_core", "nvidia.com/hostdev")
ROOT_PORT = Model("bridge", "PCIe root port", 0x060400, 0x8086, 0x352A, "pcieport")
SWITCH_PORT = Model("bridge", "PCIe switch port", 0x060400, 0x1000, 0xC030, "pcieport")


@dataclass(frozen=True)
class PciDevice:
    """One PCI function."""

    address: str  # "0000:1b:00.0"
    model: Model
    numa_node: int  # as sysfs has it: -1 if the firmware does not say
    bridges: tuple[str, ...] = ()  # the addresses above it, from the root bus down
    buses_below: Optional[range] = None  # of a bridge
    # What its device plugin claims, where that is not what sysfs says.
    claimed_numa_node: Optional[int] = None

    @property
    def kind(self) -> str:
        return self.model.kind

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)

    @property
    def folder(self) -> str:
        root_bus = (self.bridges + (self.address,))[0].rsplit(":", 1)[0]
        return "/".join((f"sys/devices/pci{root_bus}", *self.bridges, self.address))

    @property
    def gpu_uuid(self) -> Optional[str]:
        """NVIDIA's; made of the address, to be found again by the eye."""
        if self.model != NVIDIA_GPU:
            return None
        domain, bus, slot = self.address.split(":")
        return f"GPU-{domain}{bus}{slot[:2]}-0000-4000-8000-000000000000"

    @property
    def plugin_id(self) -> str:
        """The id that the device plugins of NVIDIA, AMD and SR-IOV give it."""
        return self.gpu_uuid or self.address


def switch(root_bus: int, numa_node: int, *models: Model) -> list[PciDevice]:
    """A root port with a PCIe switch, the way servers pair GPUs and their NIC, and what is behind it.

    The buses after root_bus are: the switch's upstream port, its downstream ports, then one for each
    of `models`, from root_bus + 3 on.
    """
    last = root_bus + 2 + len(models)
    root_port = f"0000:{root_bus:02x}:01.0"
    upstream = f"0000:{root_bus + 1:02x}:00.0"
    devices = [
        PciDevice(root_port, ROOT_PORT, numa_node, (), range(root_bus + 1, last + 1)),
        PciDevice(upstream, SWITCH_PORT, numa_node, (root_port,), range(root_bus + 2, last + 1)),
    ]
    for slot, model in enumerate(models):
        bus = root_bus + 3 + slot
        port = f"0000:{root_bus + 2:02x}:{slot:02x}.0"
        above = (root_port, upstream)
        devices.append(PciDevice(port, SWITCH_PORT, numa_node, above, range(bus, bus + 1)))
        devices.append(PciDevice(f"0000:{bus:02x}:00.0", model, numa_node, (*above, port)))
    return devices


def write_pci(tree: Tree, devices: Sequence[PciDevice], cpus: Sequence[Cpu]) -> None:
    for folder in ("sys/bus/pci/devices", "sys/class/net", "proc/driver"):
        tree.folder(folder)  # also of a machine without any
    for device in devices:
        _write_function(tree, device, cpus)
    for minor, device in enumerate(_of(devices, NVIDIA_GPU)):
        _write_nvidia_information(tree, device, minor)
    for minor, device in enumerate(_of(devices, AMD_GPU)):
        _write_drm(tree, device, minor)
    for device in _of(devices, NIC):
        _write_interface(tree, device, f"enp{device.bus}s0np0")
    _write_loopback(tree)


def _of(devices: Sequence[PciDevice], model: Model) -> list[PciDevice]:
    return [device for device in devices if device.model == model]


def _write_function(tree: Tree, device: PciDevice, cpus: Sequence[Cpu]) -> None:
    folder, model = device.folder, device.model
    # The kernel calls every CPU local where it does not know better.
    local_cpus = ids(cpus, lambda cpu: device.numa_node in (-1, cpu.numa_node))
    tree.put_all(
        folder,
        {
            "class": f"0x{model.class_code:06x}",
            "vendor": f"0x{model.vendor:04x}",
            "device": f"0x{model.device:04x}",
            "subsystem_vendor": f"0x{model.vendor:04x}",
            "subsystem_device": "0x0000",
            "revision": "0x01",
            "numa_node": device.numa_node,
            "local_cpulist": format_list(local_cpus),
            "local_cpus": format_mask(local_cpus, len(cpus)),
            "irq": 0,
            "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 7),
            "uevent": _format_uevent(device),
        },
    )
    tree.put_bytes(f"{folder}/config", _configuration_space(device))
    tree.link(f"{folder}/subsystem", "sys/bus/pci")
    tree.link(f"{folder}/driver", f"sys/bus/pci/drivers/{model.driver}")
    tree.link(f"sys/bus/pci/drivers/{model.driver}/{device.address}", folder)
    tree.link(f"sys/bus/pci/devices/{device.address}", folder)


def _format_uevent(device: PciDevice) -> str:
    model = device.model
    return "\n".join(
        (
            f"DRIVER={model.driver}",
            f"PCI_CLASS={model.class_code:X}",
            f"PCI_ID={model.vendor:04X}:{model.device:04X}",
            f"PCI_SUBSYS_ID={model.vendor:04X}:0000",
            f"PCI_SLOT_NAME={device.address}",
        )
    )


def _configuration_space(device: PciDevice) -> bytes:
    """The standard header, 64 bytes. From a bridge's hwloc and lspci learn which buses are below it."""
    model = device.model
    header = bytearray(64)
    struct.pack_into("<HH", header, 0, model.vendor, model.device)
    struct.pack_into("<I", header, 8, model.class_code << 8 | 0x01)  # and the revision
    if device.buses_below is not None:
        below = device.buses_below
        header[0x0E] = 1  # the header is a bridge's
        header[0x18:0x1B] = bytes((device.bus, below.start, below.stop - 1))
    return bytes(header)


def _write_nvidia_information(tree: Tree, device: PciDevice, minor: int) -> None:
    facts = {
        "Model": device.model.name,
        "IRQ": 200 + minor,
        "GPU UUID": device.gpu_uuid,
        "Video BIOS": "96.00.00.00.01",
        "Bus Type": "PCIe",
        "DMA Size": "52 bits",
        "DMA Mask": "0xfffffffffffff",
        "Bus Location": device.address,
        "Device Minor": minor,
        "GPU Excluded": "No",
    }
    lines = (f"{name}: {_tabs(name)} {value}" for name, value in facts.items())
    tree.put(f"proc/driver/nvidia/gpus/{device.address}/information", "\n".join(lines))


def _tabs(name: str) -> str:
    """That bring the values into one column, as the driver has them."""
    return "\t\t" if len(name) < 6 else "\t"


def _write_drm(tree: Tree, device: PciDevice, minor: int) -> None:
    for name, number in ((f"card{minor}", minor), (f"renderD{128 + minor}", 128 + minor)):
        folder = f"{device.folder}/drm/{name}"
        tree.put(f"{folder}/dev", f"226:{number}")
        tree.link(f"{folder}/device", device.folder)
        tree.link(f"{folder}/subsystem", "sys/class/drm")
        tree.link(f"sys/class/drm/{name}", folder)


def _write_interface(tree: Tree, device: PciDevice, name: str) -> None:
    folder = f"{device.folder}/net/{name}"
    _write_net(tree, folder, address=f"02:00:00:00:{device.bus:02x}:00", mtu=1500, speed=400000)
    tree.link(f"{folder}/device", device.folder)


def _write_loopback(tree: Tree) -> None:
    _write_net(tree, "sys/devices/virtual/net/lo", address="00:00:00:00:00:00", mtu=65536, speed=-1)


def _write_net(tree: Tree, folder: str, *, address: str, mtu: int, speed: int) -> None:
    tree.put_all(folder, {"address": address, "mtu": mtu, "speed": speed, "operstate": "up"})
    tree.link(f"{folder}/subsystem", "sys/class/net")
    tree.link(f"sys/class/net/{os.path.basename(folder)}", folder)
