"""The dry run beside the kubelet's own state files and podresources, while random pods come and go."""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

import pytest

from harness import truth
from harness.api import Object
from harness.cluster import Cluster, container, pod
from harness.node import Node
from harness.presets import USUAL

SECONDS = float(os.environ.get("SYSTEM_RANDOM_SECONDS", "30"))  # of random pods, for each node
SEED = int(os.environ.get("SYSTEM_SEED", "1"))


def on_the_node(node: Node, agent: str) -> Object:
    """Run as a pod of the node would run it."""
    return placement_of(node.run(agent, "--dry-run", "-o", "json").stdout)


def on_its_tree(node: Node, agent: str) -> Object:
    """Run elsewhere, on the node's files and socket."""
    run = node.run_outside(
        agent, "--dry-run", "-o", "json", "--root", str(node.tree), "--node-name", node.name,
        "--kubelet-config", "/var/lib/kubelet/config.yaml",
    )  # fmt: skip
    return placement_of(run.stdout)


def placement_of(output: str) -> Object:
    placement: Object = next(item for item in json.loads(output)["items"] if item["kind"] == "NodePlacement")
    return placement


def until_cleaned_up(cluster: Cluster, node: Node) -> None:
    """An admission takes out of the state files what dead pods left there."""
    name = f"broom-{node.name}"
    cluster.create_pod(pod(name, {}, node=node.name))
    assert cluster.verdict(name) == "Admitted"
    cluster.delete_pod(name)
    cluster.until_gone(name)


class RandomPods:
    """Creates and deletes pods on one node, and waits until the kubelet has answered and forgotten."""

    def __init__(self, cluster: Cluster, node: Node, seed: int) -> None:
        self._cluster = cluster
        self._node = node
        self._random = random.Random(f"{seed} {node.name}")
        self._made = 0
        self.alive: list[str] = []
        self.verdicts: dict[str, int] = {}

    def step(self) -> None:
        new = [self._create() for _ in range(self._random.randint(1, 3))]
        old = self._random.sample(self.alive, k=min(len(self.alive), self._random.randint(0, 3)))
        for name in old:
            self._cluster.delete_pod(name)
        for name in new:
            verdict = self._cluster.verdict(name)
            self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1
        for name in old:
            self._cluster.until_gone(name)
        self.alive = [name for name in self.alive + new if name not in old]

    def delete_all(self) -> None:
        for name in self.alive:
            self._cluster.delete_pod(name)
        for name in self.alive:
            self._cluster.until_gone(name)
        self.alive = []

    def _create(self) -> str:
        self._made += 1
        name = f"{self._node.name}-{self._made}"
        self._cluster.create_pod(self._any_pod(name))
        return name

    def _any_pod(self, name: str) -> Object:
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


def compare(node: Node, agent: str, before: list[Object]) -> None:
    """The dry runs `before` the kubelet cleaned up, and those of now, say what the kubelet says."""
    expected = truth.expected(node)
    listed = truth.listed(node)
    for placement in [*before, on_the_node(node, agent), on_its_tree(node, agent)]:
        assert truth.differences(truth.published(placement, node), expected) == []
        for shown in placement["status"]["pods"]:
            name = f"{shown['namespace']}/{shown['name']}"
            assert shown["alignment"] == truth.alignment(node, listed[name]), shown


@pytest.mark.parametrize("name", USUAL)
def test_the_dry_run_says_what_the_kubelet_says_while_random_pods_come_and_go(
    cluster: Cluster, agent: str, name: str
) -> None:
    node = cluster.nodes[name]
    pods = RandomPods(cluster, node, SEED)
    end = time.monotonic() + SECONDS
    points = 0
    while time.monotonic() < end:
        pods.step()
        before = [on_the_node(node, agent), on_its_tree(node, agent)]
        until_cleaned_up(cluster, node)
        compare(node, agent, before)
        points += 1
    pods.delete_all()
    until_cleaned_up(cluster, node)
    compare(node, agent, [])
    print(f"{name}: {points} quiet points, verdicts {pods.verdicts}")
    assert pods.verdicts.get("Admitted", 0) > 0
