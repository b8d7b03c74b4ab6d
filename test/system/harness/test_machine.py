"""The made-up machines, as programs read them that know nothing of how they were written."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.machine import MACHINES, Machine
from harness.machine.tree import format_list, format_mask


class Written:
    """A machine and the tree that it was written to."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.machine: Machine = MACHINES[name]
        self.root = root
        self.machine.write(root)


@pytest.fixture(scope="module", params=MACHINES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(request.param, tmp_path_factory.mktemp(request.param))


def test_lists_join_neighbours_and_masks_have_words_of_32_bits() -> None:
    assert format_list([8, 0, 1, 3, 2]) == "0-3,8"
    assert format_list([]) == ""
    assert format_mask([0, 1, 2, 3, 33], 36) == "2,0000000f"
    assert format_mask([], 8) == "00"


def test_cpus_of_two_sockets_are_numbered_thread_by_thread() -> None:
    machine = MACHINES["two-socket"]
    assert format_list(machine.cpus_of(1)) == "8-15,24-31"
    assert machine.siblings_of(24) == (8, 24)


def test_cpus_of_a_virtual_machine_are_numbered_core_by_core() -> None:
    machine = MACHINES["virtual"]
    assert format_list(machine.cpus_of(1)) == "8-15"
    assert machine.siblings_of(9) == (8, 9)


def test_cpus_that_are_switched_off_belong_to_nothing() -> None:
    machine = MACHINES["offline"]
    assert format_list(machine.cpus_of(1)) == "5,7,13,15"
    assert machine.siblings_of(4) == ()
    assert machine.siblings_of(5) == (5, 13)


def test_each_numa_node_of_eight_has_two_l3_caches() -> None:
    machine = MACHINES["eight"]
    assert [machine.installed_cpus[core].l3 for core in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_sub_numa_clusters_are_nearer_to_each_other_than_sockets_are() -> None:
    machine = MACHINES["snc"]
    assert [machine.distance(0, other) for other in machine.numa_node_ids] == [10, 12, 21, 21]


def test_plugins_advertise_the_ids_of_their_vendor() -> None:
    eight = MACHINES["eight"].device_plugins()
    assert eight["amd.com/gpu"][0] == ("0000:2b:00.0", 1)
    no_smt = MACHINES["no-smt"].device_plugins()
    assert no_smt["nvidia.com/gpu"] == [
        ("GPU-00001300-0000-4000-8000-000000000000", 0),
        ("GPU-00008300-0000-4000-8000-000000000000", 1),
    ]
    assert no_smt["nvidia.com/hostdev"] == [("0000:14:00.0", 0), ("0000:84:00.0", 1)]


def test_a_plugin_says_no_numa_node_where_sysfs_says_none() -> None:
    for device in MACHINES["virtual"].device_plugins()["nvidia.com/gpu"]:
        assert device.numa_node is None


def test_lscpu_finds_every_cpu_where_the_machine_has_it(written: Written) -> None:
    found = {cpu: (socket, node) for cpu, _, socket, node in lscpu(written.root)}
    assert found == {cpu.id: (cpu.socket, cpu.numa_node) for cpu in written.machine.cpus}


def test_lscpu_finds_the_threads_of_each_core(written: Written) -> None:
    rows = lscpu(written.root)
    for cpu, core, _, _ in rows:
        threads = tuple(other for other, its_core, _, _ in rows if its_core == core)
        assert threads == written.machine.siblings_of(cpu)


def test_lscpu_finds_the_cpus_that_share_an_l3(written: Written) -> None:
    lines = run("lscpu", "--sysroot", written.root, "--parse=CPU,CACHE").splitlines()
    l3_of = {
        int(cpu): int(l3) for cpu, *_, l3 in (re.split("[,:]", line) for line in lines if line[0] != "#")
    }
    assert l3_of.keys() == {cpu.id for cpu in written.machine.cpus}
    assert len(set(l3_of.values())) == len({cpu.l3 for cpu in written.machine.cpus})
    assert len({(l3_of[cpu.id], cpu.l3) for cpu in written.machine.cpus}) == len(set(l3_of.values()))


def test_caches_are_told_apart_by_their_ids(written: Written) -> None:
    cpus_of: dict[tuple[str, ...], set[str]] = {}
    for cache in (written.root / "sys/devices/system/cpu").glob("cpu*/cache/index*"):
        kind = tuple((cache / name).read_text() for name in ("level", "type", "id"))
        cpus_of.setdefault(kind, set()).add((cache / "shared_cpu_list").read_text())
    assert [cpus for cpus in cpus_of.values() if len(cpus) > 1] == []


def test_lspci_finds_every_function_on_its_numa_node(written: Written) -> None:
    found = {}
    for record in lspci(written.root, "-vmm").split("\n\n"):
        fields = dict(line.split(":\t", 1) for line in record.splitlines())
        if fields:
            found[fields["Slot"]] = int(fields.get("NUMANode", -1))
    assert found == {device.address: device.numa_node for device in written.machine.pci}


def test_lspci_finds_every_function_below_its_bridges(written: Written) -> None:
    # "0000:10:01.0/11:00.0/12:00.0/13:00.0", then the class.
    found = {line.split()[0] for line in lspci(written.root, "-PP").splitlines()}
    paths = ((*device.bridges, device.address) for device in written.machine.pci)
    assert found == {"/".join((first, *(below[5:] for below in rest))) for first, *rest in paths}


def test_lspci_reads_from_each_bridge_the_buses_below_it(written: Written) -> None:
    found = {}
    for record in lspci(written.root, "-v").split("\n\n"):
        if buses := re.search("secondary=(..), subordinate=(..)", record):
            found[record.split()[0]] = (int(buses[1], 16), int(buses[2], 16))
    bridges = [device for device in written.machine.pci if device.kind == "bridge"]
    assert found.keys() == {bridge.address for bridge in bridges}
    for address, (first, last) in found.items():
        below = [device.bus for device in written.machine.pci if address in device.bridges]
        assert (first, last) == (min(below), max(below)), address


def test_masks_hold_the_same_cpus_as_lists(written: Written) -> None:
    names = {"cpulist": "cpumap", "local_cpulist": "local_cpus", "shared_cpu_list": "shared_cpu_map"}
    names |= {f"{what}_cpus_list": f"{what}_cpus" for what in ("core", "die", "package")}
    names |= {f"{what}_siblings_list": f"{what}_siblings" for what in ("core", "thread")}
    for name, mask in names.items():
        lists = list((written.root / "sys").rglob(name))
        assert lists or name == "local_cpulist"
        for path in lists:
            words = path.with_name(mask).read_text().replace(",", "")
            held = [bit for bit in range(len(words) * 4) if int(words, 16) >> bit & 1]
            assert format_list(held) == path.read_text().strip(), path


def test_a_machine_has_the_memory_of_its_numa_nodes(written: Written) -> None:
    whole = meminfo(written.root / "proc/meminfo")
    nodes = [node_meminfo(written.root, node) for node in written.machine.numa_node_ids]
    for key in ("MemTotal", "MemFree", "HugePages_Total", "HugePages_Free"):
        assert whole[key] == sum(node[key] for node in nodes), key
    for node in nodes:
        assert node["MemUsed"] == node["MemTotal"] - node["MemFree"]
        assert node["MemUsed"] >= node["HugePages_Total"] * whole["Hugepagesize"]
    assert [node["MemTotal"] for node in nodes] == [
        node.memory_mib * 1024 for node in written.machine.numa_nodes
    ]


def test_a_machine_has_the_huge_pages_of_its_numa_nodes(written: Written) -> None:
    for size in ("hugepages-2048kB", "hugepages-1048576kB"):
        whole = number_in(written.root / "sys/kernel/mm/hugepages" / size / "nr_hugepages")
        nodes = (written.root / "sys/devices/system/node").glob(f"node*/hugepages/{size}/nr_hugepages")
        assert whole == sum(map(number_in, nodes)), size


def test_every_link_leads_to_something_in_the_same_tree(written: Written) -> None:
    links = [path for path in written.root.rglob("*") if path.is_symlink()]
    assert links
    for link in links:
        assert not os.path.isabs(os.readlink(link)), link
        assert link.resolve(strict=True).is_relative_to(written.root.resolve()), link


def test_every_nic_has_a_network_interface(written: Written) -> None:
    names = [path.name for path in (written.root / "sys/class/net").iterdir()]
    assert len(names) == 1 + len(written.machine.nics)  # and lo
    for nic in written.machine.nics:
        assert list((written.root / nic.folder / "net").iterdir()), nic.address


def test_the_agent_sees_the_numa_nodes_of_the_machine(written: Written, tmp_path: Path) -> None:
    machine = written.machine
    nodes = agent(written, tmp_path)["numaNodes"]
    assert [node["id"] for node in nodes] == machine.numa_node_ids
    for node in nodes:
        assert node.get("cpus", "") == format_list(machine.cpus_of(node["id"]))
        assert node["distances"] == {
            str(other): machine.distance(node["id"], other) for other in machine.numa_node_ids
        }


def test_the_agent_finds_the_function_behind_each_id_of_a_plugin(written: Written, tmp_path: Path) -> None:
    machine = written.machine
    by_id = {device.plugin_id: device for device in machine.pci if device.model.resource}
    published = agent(written, tmp_path)["devices"]
    assert {device["id"] for device in published} == by_id.keys()
    for device in published:
        truth = by_id[device["id"]]
        assert device["pciAddress"] == truth.address
        assert device.get("pciNumaNode", -1) == truth.numa_node


def test_the_agent_contradicts_the_one_plugin_that_claims_a_wrong_numa_node(
    written: Written, tmp_path: Path
) -> None:
    conditions = agent(written, tmp_path)["conditions"]
    consistent = next(each for each in conditions if each["type"] == "TopologyConsistent")
    if written.name != "misled":
        assert consistent["status"] == "True", consistent
        return
    assert consistent["status"] == "False"
    assert "1 DeviceLocalityDisagrees" in consistent["message"]


def run(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def lscpu(root: Path) -> list[tuple[int, ...]]:
    """CPU, core, socket, NUMA node; lscpu counts cores and sockets itself, from 0 on."""
    lines = run("lscpu", "--sysroot", root, "--parse=CPU,CORE,SOCKET,NODE").splitlines()
    return [tuple(map(int, line.split(","))) for line in lines if not line.startswith("#")]


def lspci(root: Path, *options: str) -> str:
    return run("lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={root}/sys/bus/pci", "-D", "-n", *options)


def meminfo(path: Path) -> dict[str, int]:
    fields = (line.split(":") for line in path.read_text().splitlines())
    return {name: int(value.split()[0]) for name, value in fields}


def node_meminfo(root: Path, node: int) -> dict[str, int]:
    path = root / f"sys/devices/system/node/node{node}/meminfo"
    return {name.split()[-1]: value for name, value in meminfo(path).items()}


def number_in(path: Path) -> int:
    return int(path.read_text())


def agent(written: Written, folder: Path) -> dict[str, Any]:
    """What the agent publishes of the machine, where the kubelet says what its plugins advertise."""
    program = os.environ.get("PLUMBLINE_AGENT")
    if program is None:
        pytest.skip("PLUMBLINE_AGENT names no plumbline-agent")
    recording = folder / "podresources.json"
    recording.write_text(json.dumps({"list": {}, "allocatable": {"devices": devices(written.machine)}}))
    shown = run(program, "--dry-run", "--root", written.root, "--podresources", recording, "-o", "json")
    placement = next(each for each in json.loads(shown)["items"] if each["kind"] == "NodePlacement")
    status: dict[str, Any] = placement["status"]
    return status


def devices(machine: Machine) -> list[dict[str, Any]]:
    """The devices of the machine's plugins in the form of podresources."""
    return [
        {"resource_name": resource, "device_ids": [device.id]}
        | ({} if device.numa_node is None else {"topology": {"nodes": [{"ID": device.numa_node}]}})
        for resource, advertised in machine.device_plugins().items()
        for device in advertised
    ]
