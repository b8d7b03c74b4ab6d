"""A kubelet that stops, dies and comes back, and pods that it takes from a folder."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
import yaml

from harness import truth
from harness.cluster import Cluster, pod
from harness.node import Node
from harness.plumbline import dry_run

EXCLUSIVE = {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """With a pod that holds something."""
    node = cluster.nodes["two-socket"]
    cluster.create_pod(pod("steady", EXCLUSIVE, node=node.name))
    assert cluster.verdict("steady") == "Admitted"
    yield node
    cluster.delete_pod("steady")
    cluster.until_gone("steady")
    cluster.until_cleaned_up(node)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_kubelet_that_does_not_answer_is_no_empty_node(
    cluster: Cluster, node: Node, how: signal.Signals
) -> None:
    before = dry_run(node)
    node.stop_kubelet(how)
    try:
        silent = node.run("plumbline-agent", "--dry-run", "-o", "json", check=False)
        assert silent.returncode == 1
        items = {item["kind"]: item for item in json.loads(silent.stdout)["items"]}
        assert "NodeResourceTopology" not in items
        status = items["NodePlacement"]["status"]
        assert "observedAt" not in status
        assert not any("freeCPUs" in zone for zone in status["numaNodes"])
        conditions = {condition["type"]: condition for condition in status["conditions"]}
        assert conditions["PodResourcesReachable"]["status"] == "False"
    finally:
        node.start_kubelet()
        cluster.until_ready(node)
    # It lists no pod until it has got its pods from the API server.
    cluster.programs.until("the kubelet lists its pod again", lambda: "default/steady" in truth.listed(node))
    after = dry_run(node)
    assert truth.differences(truth.published(after), truth.published(before)) == []


def test_a_static_pod_is_known_by_the_kubelets_uid(cluster: Cluster) -> None:
    node = cluster.nodes["two-socket"]
    manifest = pod("fixed", EXCLUSIVE)
    manifests = node.tree / "var/lib/kubelet/manifests"
    (manifests / ".fixed").write_text(yaml.safe_dump(manifest))
    (manifests / ".fixed").rename(manifests / "fixed.yaml")
    name = f"fixed-{node.name}"
    try:
        assert cluster.verdict(name) == "Admitted"
        (shown,) = [one for one in dry_run(node)["status"]["pods"] if one["name"] == name]
        assert shown["kubeletUID"] in node.state_file("cpu_manager_state")["entries"]
        assert (
            shown["kubeletUID"] == cluster.pod(name)["metadata"]["annotations"]["kubernetes.io/config.hash"]
        )
        assert shown["alignment"] == "Aligned"
    finally:
        (manifests / "fixed.yaml").unlink()
        cluster.until_gone(name)
        cluster.until_cleaned_up(node)
