"""What the guest with containers reported (see inside/containers.sh): at each moment Plumbline's word, and beside
it those of the kubelet's podresources API, of its state files and of the kernel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import truth
from harness.api import Object


def section(folder: Path, name: str) -> str:
    """What a command of the guest said; it must have succeeded without a complaint."""
    errors = folder / f"{name}.err.txt"
    complaint = errors.read_text() if errors.exists() else ""
    status = (folder / f"{name}.status").read_text().strip()
    assert (status, complaint) == ("0", ""), name
    return (folder / f"{name}.txt").read_text()


@dataclass(frozen=True)
class Allowed:
    """Where the kernel lets a container run and take memory: its lists of CPUs and NUMA nodes."""

    cpus: str
    memory_nodes: str


class Moment:
    """Its pods have one container each, so what a container holds is told by the pod's name."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    def _text(self, what: str) -> str:
        return section(self._folder, f"{self._name}.{what}")

    def _json(self, what: str) -> Any:
        return json.loads(self._text(what))

    # Plumbline

    def published(self, kind: str) -> Object:
        found: Object = next(item for item in self._json("agent")["items"] if item["kind"] == kind)
        return found

    def placement(self) -> Object:
        status: Object = self.published("NodePlacement")["status"]
        return status

    def pods(self) -> dict[str, Object]:
        return {pod["name"]: pod for pod in self.placement()["pods"]}

    def numa_nodes(self) -> dict[int, Object]:
        return {node["id"]: node for node in self.placement()["numaNodes"]}

    def condition(self, kind: str) -> tuple[str, str]:
        found = next(condition for condition in self.placement()["conditions"] if condition["type"] == kind)
        return found["status"], found["reason"]

    def held(self) -> dict[str, Object]:
        return _by_pod(truth.holdings(self.published("NodePlacement")))

    def allowed(self) -> dict[str, Allowed]:
        kernel = {name: pod["containers"][0]["kernel"] for name, pod in self.pods().items()}
        return {name: Allowed(says["cpus"], says["memoryNodes"]) for name, says in kernel.items()}

    # The kubelet

    def listed(self) -> dict[str, Object]:
        """What podresources says is held."""
        return _by_pod(truth.held_by(self._json("list")))

    def state_file(self, name: str) -> Object:
        state: Object = self._json(name)
        return state

    def kubelets_pods(self) -> dict[str, Object]:
        return {pod["metadata"]["name"]: pod for pod in self._json("pods")["items"]}

    # The kernel

    def allowed_by_cgroups(self) -> dict[str, Allowed]:
        """Of all running pods, by their containers' cgroups."""
        return self._kernel_says("cpuset.cpus.effective", "cpuset.mems.effective")

    def allowed_by_processes(self) -> dict[str, Allowed]:
        """The same by the status of the processes in them, which must agree."""
        return self._kernel_says("Cpus_allowed_list", "Mems_allowed_list")

    def _kernel_says(self, of_cpus: str, of_memory_nodes: str) -> dict[str, Allowed]:
        values: dict[tuple[str, str], set[str]] = {}
        for line in self._text("cgroups").splitlines():
            cgroup, field, value = line.split(" ")
            values.setdefault((cgroup, field), set()).add(value)

        def only(cgroup: str, field: str) -> str:
            (value,) = values[cgroup, field]
            return value

        return {
            name: Allowed(only(cgroup, of_cpus), only(cgroup, of_memory_nodes))
            for name, cgroup in self._container_ids().items()
        }

    def _container_ids(self) -> dict[str, str]:
        """By the kubelet's word."""
        return {
            name: pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
            for name, pod in self.kubelets_pods().items()
            if pod["status"]["phase"] == "Running"
        }


def _by_pod(held: truth.Facts) -> dict[str, Object]:
    return {
        name.removeprefix("default/"): containers["app"] for name, containers in held.items() if containers
    }
