"""Our manifests applied to a cluster, and who its agents are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .api import Api, ApiError, Object
from .cluster import AGENT_ACCOUNT, AGENT_NAMESPACE, Cluster
from .manifests import Kubectl, daemon_set, kustomization

PLACEMENTS = "/apis/plumbline.dev/v1alpha1/nodeplacements"
NRTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{AGENT_NAMESPACE}/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANAGER = "plumbline-agent"
# The image that the nodes' runtime has, and never starts.
IMAGE = [{"name": "plumbline-agent", "newName": "localhost/app", "newTag": "1"}]


def agents_pods(cluster: Cluster) -> dict[str, str]:
    """Names of the running ones by node."""
    pods = cluster.api.items(f"/api/v1/namespaces/{AGENT_NAMESPACE}/pods")
    return {p["spec"]["nodeName"]: p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Running"}


def agents_token(cluster: Cluster, node: str) -> str:
    """As the agent's pod on the node gets it."""
    return cluster.token_of_pod(agents_pods(cluster)[node], AGENT_NAMESPACE, AGENT_ACCOUNT)


def agent_of(cluster: Cluster, node: str) -> Api:
    """The API server as the agent's pod on the node may speak to it."""
    return cluster.control_plane.with_token(agents_token(cluster, node))


class Installation:
    """As a user has it who applied an overlay. On each node is a pod of the DaemonSet, whose identity is
    the agent's there; no program runs in it, since the nodes' runtime starts nothing."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, folder: Path, **more: Any) -> None:
        """Returns when all is in force. `more` is further content of the kustomization."""
        self.cluster = cluster
        self.kubectl = kubectl
        self.overlay = kustomization(folder, "overlays/default", images=IMAGE, **more)
        kubectl("apply", "-k", str(self.overlay))
        self.until_on_every_node()
        for resource in (PLACEMENTS, NRTS):
            cluster.programs.until(f"{resource} is served", lambda: cluster.api.exists(resource))
        cluster.programs.until("the policy is in force", self._policy_is_in_force)

    def remove(self) -> None:
        self.kubectl("delete", "-k", str(self.overlay), "--wait")

    def until_on_every_node(self) -> None:
        self.cluster.programs.until(
            "an agent's pod runs on every node",
            lambda: set(agents_pods(self.cluster)) == set(self.cluster.nodes),
        )

    def pod_spec(self) -> Object:
        """That every agent's pod is made from."""
        spec: Object = daemon_set(self.kubectl, self.overlay)["spec"]["template"]["spec"]
        return spec

    def _policy_is_in_force(self) -> bool:
        """A while after it was created."""
        one, other = list(self.cluster.nodes)[:2]
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": other},
            "spec": {"holderIdentity": other},
        }
        try:
            agent_of(self.cluster, one).apply(f"{LEASES}/{other}", lease, MANAGER, dryRun="All")
        except ApiError as error:
            return error.code == 403
        return False
