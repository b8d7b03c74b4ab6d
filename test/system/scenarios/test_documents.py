"""What the documents show of a cluster is what there is to be seen in one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.agent import Agent
from harness.cluster import Cluster, pod
from harness.control_plane import ADDRESS, PORT
from harness.installation import Installation
from harness.manifests import Kubectl

PROJECT = Path(__file__).parents[3]
GPU = "nvidia.com/gpu"
KINDS = ["nodeplacements", "noderesourcetopologies"]
SHOWN_IN = [("README.md", kind) for kind in KINDS] + [("docs/install.md", "nodeplacements")]
# On no-smt nothing is aligned: the second pod gets the last CPU of the first NUMA node and one of the other.
PODS = [
    ("llm-0", "two-socket", {"cpu": "4", "memory": "16Gi", GPU: "1"}),
    ("llm-1", "two-socket", {"cpu": "8", "memory": "32Gi", GPU: "2"}),
    ("web-0", "no-smt", {"cpu": "6", "memory": "4Gi"}),
    ("web-1", "no-smt", {"cpu": "2", "memory": "4Gi"}),
]


@pytest.fixture(scope="module")
def tables(cluster: Cluster, kubectl: Kubectl, installed: Installation) -> Iterator[dict[str, str]]:
    """What kubectl prints of each kind, with agents on two nodes."""
    agents = []
    for name, node, requests in PODS:
        cluster.create_pod(pod(name, requests, node=node))
        assert cluster.verdict(name) == "Admitted"
    try:
        for node in ("no-smt", "two-socket"):
            agents.append(Agent(installed, cluster.nodes[node], (ADDRESS, PORT)))
            agents[-1].start()
        for agent in agents:
            agent.until_true()
        yield {kind: kubectl("get", kind) for kind in KINDS}
    finally:
        for agent in agents:
            agent.stop()
        for name, node, _ in PODS:
            cluster.delete_pod(name)
            cluster.until_gone(name)
        for node in ("no-smt", "two-socket"):
            cluster.until_cleaned_up(cluster.nodes[node])


def without_age(table: str) -> list[list[str]]:
    """The words of each line; AGE is the last column."""
    return [line.split()[:-1] for line in table.strip().splitlines()]


@pytest.mark.parametrize("document, kind", SHOWN_IN)
def test_what_kubectl_prints_is_shown(tables: dict[str, str], document: str, kind: str) -> None:
    print(f"$ kubectl get {kind}\n{tables[kind]}")
    _, begin, rest = (PROJECT / document).read_text().partition(f"$ kubectl get {kind}\n")
    assert begin
    shown = rest.partition("```")[0].partition("\n$ ")[0]
    assert without_age(shown) == without_age(tables[kind])
