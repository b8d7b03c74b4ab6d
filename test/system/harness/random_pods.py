"""Pods of all kinds that come and go on a node."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from .api import Object
from .cluster import Cluster, container, pod
from .node import Node


class RandomPods:
    """Creates and deletes pods on one node, and waits until the kubelet has answered and forgotten."""

    def __init__(self, cluster: Cluster, node: Node, seed: int) -> None:
        self._cluster = cluster
        self._node = node
        self._random = random.Random(f"{seed} {node.name}")
        self._made = 0
        self._coming: list[Object] = []
        self._going: list[str] = []
        self.alive: list[str] = []
        self.verdicts: Counter[str] = Counter()

    def step(self) -> None:
        """Some pods at once, and some go meanwhile."""
        self.begin()
        self.finish()

    def begin(self) -> None:
        """A step that the kubelet may not carry out yet."""
        self._coming = [self.any_pod() for _ in range(self._random.randint(1, 3))]
        self._going = self._choose_old()
        for made in self._coming:
            self._cluster.create_pod(made)
        for name in self._going:
            self._cluster.delete_pod(name)

    def finish(self) -> None:
        """What was begun, if it is not finished already."""
        coming, self._coming = self._coming, []
        going, self._going = self._going, []
        for made in coming:
            self._note(made)
        self._until_gone(going)

    def should_go_on(self) -> bool:
        """Where time is over: on a slow machine it may be before any pod was admitted."""
        return self.verdicts["Admitted"] == 0 and self._made < 30

    def create(self, made: Object) -> str:
        """One pod; returns the kubelet's verdict."""
        self._cluster.create_pod(made)
        return self._note(made)

    def delete_some(self) -> None:
        self._delete(self._choose_old())

    def delete_all(self) -> None:
        self._delete(list(self.alive))

    def _choose_old(self) -> list[str]:
        return self._random.sample(
            self.alive, k=min(len(self.alive), self._random.choice([0, 0, 1, 1, 2, 3]))
        )

    def _note(self, made: Object) -> str:
        name: str = made["metadata"]["name"]
        verdict = self._cluster.verdict(name)
        self.verdicts[verdict] += 1
        self.alive.append(name)
        return verdict

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self._cluster.delete_pod(name)
        self._until_gone(names)

    def _until_gone(self, names: list[str]) -> None:
        for name in names:
            self._cluster.until_gone(name)
            self.alive.remove(name)

    def any_pod(self) -> Object:
        self._made += 1
        name = f"{self._node.name}-{self._made}"
        if self._node.spec.feature_gates.get("PodLevelResourceManagers") and self._random.random() < 0.5:
            return self._any_pod_with_resources_of_its_own(name)
        containers = [self._any_container(f"c{i}") for i in range(self._random.choice([1, 1, 1, 2]))]
        made = pod(name, {}, node=self._node.name, containers=containers)
        if self._random.random() < 0.2:
            first = self._any_container("first")
            made["spec"]["initContainers"] = [{**first, "image": "localhost/done:1"}]
        if self._random.random() < 0.1:
            made["spec"].setdefault("initContainers", []).append(
                {**self._any_container("sidecar"), "restartPolicy": "Always"}
            )
        return made

    def _any_pod_with_resources_of_its_own(self, name: str) -> Object:
        """Some containers have a part of it for themselves, the others share the rest."""
        parts: list[dict[str, str]] = [{}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "3Gi"}]
        containers = []
        for i in range(self._random.choice([1, 2, 3])):
            part = dict(self._random.choice(parts))
            if self._random.random() < 0.3:
                part["nvidia.com/gpu"] = "1"
            containers.append(container(f"c{i}", part))
        least = sum(int(one["resources"]["requests"].get("cpu", 0)) for one in containers)
        own = {
            "cpu": str(max(least, self._random.choice([2, 4, 6]))),
            "memory": self._random.choice(["9Gi", "15Gi"]),
        }
        return pod(
            name,
            {},
            node=self._node.name,
            containers=containers,
            resources={"requests": own, "limits": own},
        )

    def _any_container(self, name: str) -> Object:
        choose = self._random.choice
        kind = self._random.random()
        if kind < 0.1:
            return container(name, {})  # BestEffort, if the others are
        requests: dict[str, Any] = {
            "cpu": choose(["1", "2", "2", "3", "4", "500m"]),
            "memory": choose(["1Gi", "3Gi"]),
        }
        for resource in self._node.machine.device_plugins():
            if self._random.random() < 0.4:
                requests[resource] = choose(["1", "1", "2"])
        if kind < 0.25:
            more = {**requests, "memory": "4Gi"}
            return container(name, requests, more)  # Burstable
        if self._random.random() < 0.15:
            requests["hugepages-2Mi"] = "64Mi"
        if self._random.random() < 0.08:
            requests["memory"] = "40Gi"  # more than one NUMA node of some machines has
        return container(name, requests)
