"""What a node's NodePlacement has to say, by the kubelet's own words: its state files, Kubernetes' own
client of podresources, and the machine as it was made. Nothing of Plumbline's is used here."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from . import cpus
from .api import Object
from .machine import Machine
from .node import Node

Facts = dict[str, Any]

UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def bytes_of(quantity: str) -> int:
    number = quantity.rstrip("KMGTi")
    return int(number) * UNITS[quantity[len(number) :]]


# The kubelet's word


def expected(node: Node) -> Facts:
    """At a quiet point, and after an admission: only that takes the entries of dead pods out of the
    state files."""
    machine = node.machine
    held = listed(node)
    allocatable = node.podresources("allocatable")
    facts: Facts = {
        "NUMA nodes": {id: _hardware(machine, id) for id in machine.numa_node_ids},
        "devices": {
            (device["resourceName"], id): {
                "claimed": _numa_nodes(device),
                "plugged": _places(machine)[device["resourceName"], id],
            }
            for device in allocatable.get("devices", [])
            for id in device["deviceIds"]
        },
        "settings": _settings(node),
        "pods": {name: containers for name, containers in held.items() if containers},
    }
    for uid, name in _names(node).items():
        if hidden := _hidden(node, uid, held.get(name, {})):
            facts["pods"][name] = held.get(name, {}) | hidden
    if node.spec.cpu_policy == "static":
        shared = cpus.parse(node.state_file("cpu_manager_state")["defaultCpuSet"])
        free = shared - cpus.parse(node.kubelet_configuration()["reservedSystemCPUs"])
        for id, zone in facts["NUMA nodes"].items():
            zone["free CPUs"] = cpus.render(free & set(machine.cpus_of(id)))
    if node.spec.memory_policy == "Static":
        for id, state in node.state_file("memory_manager_state")["machineState"].items():
            zone = facts["NUMA nodes"][int(id)]
            zone["memory"] = memory_tables(state)
            zone["memory group"] = sorted(state["cells"])
            zone["memory assignments"] = state["numberOfAssignments"]
    return facts


def memory_tables(state: Object) -> Facts:
    """Of a NUMA node of memory_manager_state, by type: capacity, reserved, allocatable, free."""
    return {
        type: (table["total"], table["systemReserved"], table["allocatable"], table["free"])
        for type, table in state["memoryMap"].items()
    }


def listed(node: Node) -> Facts:
    """What podresources lists as held, by pod and container."""
    return held_by(node.podresources("list"))


def held_by(answer: Object) -> Facts:
    """The same of an answer that was asked for elsewhere."""
    return dict(map(_held, answer.get("podResources", [])))


def _hardware(machine: Machine, id: int) -> Facts:
    return {
        "CPUs": cpus.render(machine.cpus_of(id)),
        "distances": {other: machine.distance(id, other) for other in machine.numa_node_ids},
    }


def _settings(node: Node) -> Facts:
    configured = node.kubelet_configuration()
    return {
        "topology manager": (configured["topologyManagerPolicy"], configured["topologyManagerScope"]),
        "topology options": configured["topologyManagerPolicyOptions"],
        "CPU manager": (configured["cpuManagerPolicy"], configured["reservedSystemCPUs"]),
        "CPU options": configured["cpuManagerPolicyOptions"],
        "memory manager": configured["memoryManagerPolicy"],
    }


def _numa_nodes(device: Object) -> list[int]:
    # protojson leaves out a zero: {} is NUMA node 0.
    return sorted(int(node.get("ID", 0)) for node in device.get("topology", {}).get("nodes", []))


def _held(pod: Object) -> tuple[str, Facts]:
    """A pod's name, and by container what it holds exclusively. What the pod has as a whole stands
    under "": the CPUs and memory of its containers are parts of that."""
    containers = {"": _exclusive(pod)} | {one["name"]: _exclusive(one) for one in pod.get("containers", [])}
    return f"{pod['namespace']}/{pod['name']}", {
        name: held for name, held in containers.items() if any(held.values())
    }


def _exclusive(holder: Object) -> Facts:
    """Of a pod or of a container of podresources."""
    return {
        "CPUs": cpus.render(map(int, holder.get("cpuIds", []))),
        "memory": sorted(
            (block["memoryType"], int(block["size"]), _numa_nodes(block))
            for block in holder.get("memory", [])
        ),
        "devices": sorted(
            (device["resourceName"], id) for device in holder.get("devices", []) for id in device["deviceIds"]
        ),
    }


def _names(node: Node) -> dict[str, str]:
    """Of the pods that are not over, by UID."""
    return {
        pod["metadata"]["uid"]: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in node.pods()
        if pod["status"]["phase"] not in ("Failed", "Succeeded")
    }


def uids(node: Node) -> dict[str, str]:
    """Of the same pods, by name."""
    return {name: uid for uid, name in _names(node).items()}


def _hidden(node: Node, uid: str, listed: Facts) -> Facts:
    """What podresources does not list: init containers that have finished keep, until their pod is
    gone, what no other container of the pod has taken over. Only the state files know."""
    entries: Facts = {}
    for container, text in node.state_file("cpu_manager_state").get("entries", {}).get(uid, {}).items():
        entries.setdefault(container, _nothing())["CPUs"] = text
    if node.spec.memory_policy == "Static":
        blocks = node.state_file("memory_manager_state").get("entries", {}).get(uid, {})
        for container, kept in blocks.items():
            entries.setdefault(container, _nothing())["memory"] = sorted(
                (block["type"], block["size"], block["numaAffinity"]) for block in kept if block["size"]
            )
    checkpoint = node.state_file("device-plugins/kubelet_internal_checkpoint")["Data"]
    for entry in checkpoint["PodDeviceEntries"] or []:
        if entry["PodUID"] == uid:
            ids = [id for ids in entry["DeviceIDs"].values() for id in ids]
            held = entries.setdefault(entry["ContainerName"], _nothing())
            held["devices"] = sorted(held["devices"] + [(entry["ResourceName"], id) for id in ids])
    taken_cpus = set().union(*(cpus.parse(other["CPUs"]) for other in listed.values()))
    taken_devices = {device for other in listed.values() for device in other["devices"]}
    hidden = {name: held for name, held in entries.items() if name not in listed}
    for held in hidden.values():
        if "" in listed:
            held["memory"] = []  # a part of the pod's
        held["CPUs"] = cpus.render(cpus.parse(held["CPUs"]) - taken_cpus)
        held["devices"] = [device for device in held["devices"] if device not in taken_devices]
    return {name: held for name, held in hidden.items() if any(held.values())}


def _nothing() -> Facts:
    return {"CPUs": "", "memory": [], "devices": []}


def zones(node: Node, facts: Facts) -> Facts:
    """Of NodeResourceTopology, by what is expected: capacity, allocatable and available of each resource."""
    allocatable_cpus = set(map(int, node.podresources("allocatable").get("cpuIds", [])))
    held = {device for pod in facts["pods"].values() for one in pod.values() for device in one["devices"]}
    amounts: Facts = {f"node-{id}": {} for id in node.machine.numa_node_ids}
    for id in node.machine.numa_node_ids:
        zone, its_cpus = facts["NUMA nodes"][id], set(node.machine.cpus_of(id))
        if "free CPUs" in zone:
            free = len(cpus.parse(zone["free CPUs"]))
            amounts[f"node-{id}"]["cpu"] = (len(its_cpus), len(its_cpus & allocatable_cpus), free)
        for type, (capacity, _, allocatable, free) in zone.get("memory", {}).items():
            if capacity or allocatable:
                amounts[f"node-{id}"][type] = (capacity, allocatable, free)
    for (resource, id), places in facts["devices"].items():
        for numa_node in places["claimed"]:
            count, healthy, free = amounts[f"node-{numa_node}"].get(resource, (0, 0, 0))
            is_free = int((resource, id) not in held)
            amounts[f"node-{numa_node}"][resource] = (count + 1, healthy + 1, free + is_free)
    return amounts


# Plumbline's word, in the same shape


def published(placement: Object) -> Facts:
    status = placement["status"]
    return {
        "NUMA nodes": {zone["id"]: _zone(zone) for zone in status["numaNodes"]},
        "devices": {
            (device["resource"], device["id"]): {
                "claimed": sorted(device.get("numaNodes", [])),
                "plugged": device.get("pciNumaNode", -1),
            }
            for device in status["devices"]
            if device["healthy"]
        },
        "settings": _published_settings(status["kubelet"]),
        "pods": holdings(placement),
    }


def holdings(placement: Object) -> Facts:
    """What its pods hold, by pod and container."""
    return {f"{pod['namespace']}/{pod['name']}": _holding(pod) for pod in placement["status"]["pods"]}


def _published_settings(kubelet: Object) -> Facts:
    topology, cpu = kubelet["topologyManager"], kubelet["cpuManager"]
    return {
        "topology manager": (topology["policy"], topology["scope"]),
        "topology options": topology["options"],
        "CPU manager": (cpu["policy"], cpu["reservedCPUs"]),
        "CPU options": cpu["options"],
        "memory manager": kubelet["memoryManager"]["policy"],
    }


def _zone(zone: Object) -> Facts:
    facts: Facts = {
        "CPUs": zone["cpus"],
        "distances": {int(id): distance for id, distance in zone["distances"].items()},
    }
    if "freeCPUs" in zone:
        facts["free CPUs"] = zone["freeCPUs"]
    if "memoryGroup" in zone:
        facts["memory"] = published_memory_tables(zone)
        facts["memory group"] = zone["memoryGroup"]
        facts["memory assignments"] = zone["memoryAssignments"]
    return facts


def published_memory_tables(zone: Object) -> Facts:
    """As memory_tables has them."""
    columns = ("capacity", "systemReserved", "allocatable", "free")
    return {table["type"]: tuple(bytes_of(table[column]) for column in columns) for table in zone["memory"]}


def _holding(pod: Object) -> Facts:
    containers = {
        container["name"]: {
            "CPUs": container.get("cpus", ""),
            "memory": sorted(
                (block["type"], bytes_of(block["size"]), sorted(block["numaNodes"]))
                for block in container.get("memory", [])
            ),
            "devices": sorted(
                (device["resource"], id) for device in container.get("devices", []) for id in device["ids"]
            ),
        }
        for container in pod["containers"]
    }
    # Those that hold nothing are shown for what the kernel says of them.
    return {name: held for name, held in containers.items() if any(held.values())}


def not_settled(placement: Object) -> list[str]:
    """Why it does not vouch for what it says, if so."""
    settled = next(one for one in placement["status"]["conditions"] if one["type"] == "Settled")
    return [] if settled["status"] == "True" else [f"not settled: {settled['message']}"]


def published_zones(nrt: Object) -> Facts:
    """As zones has them."""
    columns = ("capacity", "allocatable", "available")
    return {
        zone["name"]: {
            resource["name"]: tuple(int(resource[column]) for column in columns)
            for resource in zone["resources"]
        }
        for zone in nrt["zones"]
    }


class Word:
    """The kubelet's at one moment, to compare what Plumbline says with."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._expected = expected(node)
        self._zones = zones(node, self._expected)
        self._listed = listed(node)
        self._uids = uids(node)

    def against_placement(self, placement: Object) -> list[str]:
        """One line for each fact that is told differently; of pods also where they are and how aligned."""
        found = differences(published(placement), self._expected)
        for pod in placement["status"]["pods"]:
            found += differences(_judged(pod), self._judged(f"{pod['namespace']}/{pod['name']}"))
        return found

    def against_nrt(self, nrt: Object) -> list[str]:
        return differences(published_zones(nrt), self._zones)

    def _judged(self, name: str) -> Facts:
        containers = self._listed.get(name, {})
        facts = {
            "alignment": alignment(self._node, containers),
            "NUMA nodes": numa_nodes_of(self._node.machine, containers.values()),
            "uid": self._uids.get(name),
        }
        return {name: facts}


def _judged(pod: Object) -> Facts:
    facts = {"alignment": pod["alignment"], "NUMA nodes": pod["numaNodes"], "uid": pod.get("uid")}
    return {f"{pod['namespace']}/{pod['name']}": facts}


def differences(published: Facts, expected: Facts) -> list[str]:
    """One line for each fact that only one of them has or that they tell differently."""
    ours, theirs = dict(_flat("", published)), dict(_flat("", expected))
    return [
        f"{name}: Plumbline says {ours.get(name, 'nothing')}, the kubelet {theirs.get(name, 'nothing')}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield name.strip(), value
        return
    for key, part in value.items():
        yield from _flat(f"{name} {key}", part)


# Alignment, the plain way


def alignment(node: Node, containers: Facts) -> str:
    """Of a pod's listed containers: the worst unit's word (docs/nodeplacement.md, Alignment)."""
    if "" in containers:
        parts = [{**_nothing(), "devices": held["devices"]} for name, held in containers.items() if name]
        containers = {str(i): held for i, held in enumerate([containers[""], *parts])}
    units = [list(containers.values())] if node.spec.scope == "pod" else [[c] for c in containers.values()]
    order = ["Aligned", "Spread", "Unpinned", "Misaligned", "Unknown"]
    return max((_unit_alignment(node.machine, unit) for unit in units), key=order.index, default="Aligned")


def _unit_alignment(machine: Machine, unit: list[Facts]) -> str:
    held_cpus = _cpus_of(unit)
    devices = [device for container in unit for device in container["devices"]]
    where = numa_nodes_of(machine, unit)
    if -1 in [_places(machine)[device] for device in devices]:
        return "Unknown"
    if len(where) > _fewest(machine, unit, held_cpus, devices):
        return "Misaligned"
    if devices and not held_cpus:
        return "Unpinned"
    return "Spread" if len(where) > 1 else "Aligned"


def numa_nodes_of(machine: Machine, containers: Iterable[Facts]) -> list[int]:
    """Those that they hold anything on."""
    where = {id for id in machine.numa_node_ids if _cpus_of(containers) & set(machine.cpus_of(id))}
    where |= {id for container in containers for block in container["memory"] for id in block[2]}
    where |= {_places(machine)[device] for container in containers for device in container["devices"]}
    return sorted(where - {-1})


def _cpus_of(containers: Iterable[Facts]) -> set[int]:
    return set().union(*(cpus.parse(container["CPUs"]) for container in containers))


def _fewest(machine: Machine, unit: list[Facts], held_cpus: set[int], devices: list[tuple[str, str]]) -> int:
    """The fewest NUMA nodes whose installed capacity could hold it."""
    ids = machine.numa_node_ids
    for width in range(1, len(ids) + 1):
        for mask in itertools.combinations(ids, width):
            enough_cpus = sum(len(machine.cpus_of(id)) for id in mask) >= len(held_cpus)
            enough_memory = all(
                sum(_installed(machine, id, type) for id in mask) >= _sum_of(unit, type)
                for type in {block[0] for container in unit for block in container["memory"]}
            )
            enough_devices = all(
                sum(1 for (kind, _), id in _places(machine).items() if kind == resource and id in mask)
                >= sum(1 for held, _ in devices if held == resource)
                for resource in {resource for resource, _ in devices}
            )
            if enough_cpus and enough_memory and enough_devices:
                return width
    return len(ids)


def _places(machine: Machine) -> dict[tuple[str, str], int]:
    """The NUMA node of each device that a plugin can hand out, as sysfs has it."""
    return {(device.model.resource, device.plugin_id): device.numa_node for device in machine.pci}


def _installed(machine: Machine, id: int, type: str) -> int:
    """Bytes of a kind of memory on a NUMA node."""
    node = machine.numa_node(id)
    pages = {"hugepages-2Mi": node.huge_pages_2m << 21, "hugepages-1Gi": node.huge_pages_1g << 30}
    return pages[type] if type in pages else (node.memory_mib << 20) - sum(pages.values())


def _sum_of(unit: list[Facts], type: str) -> int:
    return sum(size for container in unit for held, size, _ in container["memory"] if held == type)
