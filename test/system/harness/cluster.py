"""A cluster: the control plane, some nodes, and pods on them."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .api import Api, Object
from .control_plane import ControlPlane
from .node import Node, NodeSpec
from .process import Failed, Programs, stopwatch

AGENT_NAMESPACE = "plumbline-system"
AGENT_ACCOUNT = "plumbline-agent"


class Cluster:
    """Lives as long as the sandbox does; nothing of it needs to be taken down."""

    def __init__(self, folder: Path, peers: Path) -> None:
        self.programs = Programs(folder)
        self.control_plane = ControlPlane(self.programs, peers)
        self.api = self.control_plane.api
        self.nodes: dict[str, Node] = {}
        self.times: dict[str, float] = {}  # seconds, by what took them
        self._peers = peers
        self._addresses = itertools.count(11)  # the last number of a node's

    def start(self, specs: list[NodeSpec]) -> None:
        with stopwatch(self.times, "control plane"):
            self.control_plane.start()
        with stopwatch(self.times, "nodes"):
            self.add_nodes(specs)

    def add_nodes(self, specs: list[NodeSpec]) -> None:
        added = [
            Node(spec, f"10.210.0.{next(self._addresses)}", self.programs, self._peers, self.control_plane)
            for spec in specs
        ]
        with ThreadPoolExecutor() as pool:
            list(pool.map(Node.start, added))
        self.nodes.update({node.name: node for node in added})
        for node in added:
            self.until_ready(node)

    def remove_node(self, name: str) -> None:
        """With its pods, which nobody would end."""
        self.nodes.pop(name).stop()
        self.api.delete(f"/api/v1/nodes/{name}")
        for left in self.api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
            metadata = left["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            self.api.delete(path, gracePeriodSeconds="0")

    def until_ready(self, node: Node) -> None:
        """Ready, untainted, and with all the devices of its plugins."""
        expected = {
            resource: str(len(devices)) for resource, devices in node.machine.device_plugins().items()
        }

        def ready() -> bool:
            seen = self.api.get(f"/api/v1/nodes/{node.name}")
            conditions = {c["type"]: c["status"] for c in seen["status"].get("conditions", [])}
            capacity = seen["status"].get("capacity", {})
            devices = {resource: capacity.get(resource) for resource in expected}
            if conditions.get("Ready") != "True" or devices != expected or seen["spec"].get("taints"):
                raise Failed(
                    f"conditions {conditions}, devices {devices}, taints {seen['spec'].get('taints')}"
                )
            return True

        self.programs.until(f"{node.name} is ready", ready)

    # Pods

    def create_pod(self, pod: Object) -> Object:
        return self.api.create(f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods", pod)

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        self.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def pod(self, name: str, namespace: str = "default") -> Object:
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def verdict(self, name: str, namespace: str = "default", limit_s: float = 30) -> str:
        """What its kubelet answered: "Admitted", or the reason of the rejection."""

        def answered() -> str | None:
            status = self.pod(name, namespace)["status"]
            if status["phase"] in ("Running", "Succeeded"):
                return "Admitted"
            return status.get("reason", "Failed") if status["phase"] == "Failed" else None

        return self.programs.until(f"a verdict on pod {namespace}/{name}", answered, limit_s)

    def until_gone(self, name: str, namespace: str = "default") -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self.programs.until(f"pod {namespace}/{name} is gone", lambda: not self.api.exists(path))

    def until_cleaned_up(self, node: Node) -> None:
        """An admission takes out of the node's state files what dead pods left there."""
        name = f"broom-{node.name}"
        self.create_pod(pod(name, {}, node=node.name))
        if (verdict := self.verdict(name)) != "Admitted":
            raise Failed(f"{node.name} turns away a pod that wants nothing: {verdict}")
        self.delete_pod(name)
        self.until_gone(name)

    # Identities

    def agent_token(self, node: str) -> str:
        """The token that the agent's pod on the node gets."""
        return self.token_of_pod(f"{AGENT_ACCOUNT}-{node}", AGENT_NAMESPACE, AGENT_ACCOUNT)

    def token_of_pod(self, name: str, namespace: str, account: str) -> str:
        """For the service account, bound to the Pod object, so that the API server knows the pod and the
        node of who presents it, as it does of the token that a kubelet puts into a pod."""
        bound = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": name,
            "uid": self.pod(name, namespace)["metadata"]["uid"],
        }
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "boundObjectRef": bound},
        }
        answer = self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", body)
        token: str = answer["status"]["token"]
        return token

    def as_agent(self, node: str) -> Api:
        return self.control_plane.with_token(self.agent_token(node))


def peers_folder() -> Path:
    """Where test/system/peers/build put the programs."""
    try:
        return Path(os.environ["SYSTEM_PEERS"])
    except KeyError:
        raise Failed("SYSTEM_PEERS does not say where the peers are; run scripts/test --system") from None


def pod(
    name: str,
    requests: dict[str, str],
    *,
    node: str | None = None,
    namespace: str = "default",
    limits: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod of one container; Guaranteed unless `limits` say otherwise. With `node`, no scheduler is
    asked: the kubelet gets it as it is."""
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "hostNetwork": True,
            "containers": [container("app", requests, limits)],
            **spec,
        },
    }


def container(
    name: str, requests: dict[str, str], limits: dict[str, str] | None = None, image: str = "app"
) -> Object:
    return {
        "name": name,
        "image": f"localhost/{image}:1",
        "imagePullPolicy": "Never",
        "resources": {"requests": requests, "limits": requests if limits is None else limits},
    }
