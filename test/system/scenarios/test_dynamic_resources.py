"""Dynamic resource allocation: what a kubelet lists of a driver's devices, by what the driver publishes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from harness.agent import Agent
from harness.api import Object
from harness.cluster import Cluster, pod
from harness.control_plane import ADDRESS, PORT
from harness.installation import Installation
from harness.machine import PciDevice
from harness.manifests import Kubectl
from harness.node import Node
from harness.process import Failed

RESOURCES = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCES}/namespaces/default/resourceclaims"
DRIVER = "dra.example.com"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Node:
    return cluster.nodes["two-socket"]


@pytest.fixture(scope="module")
def agent(cluster: Cluster, kubectl: Kubectl, run_folder: Path, node: Node) -> Iterator[Agent]:
    """It may read ResourceSlices, and the pods of its node."""
    components = ["node-pods", "resource-slices"]
    installation = Installation(cluster, kubectl, run_folder / "manifests/dynamic", components=components)
    agent = Agent(installation, node, (ADDRESS, PORT))
    agent.start()
    agent.until_ready()
    yield agent
    agent.stop()
    installation.remove()


@pytest.fixture(scope="module")
def driver(cluster: Cluster, node: Node) -> Iterator[str]:
    """Runs on the node, and the scheduler may allocate its devices."""
    device_class = {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector("true")]}}
    cluster.api.create(f"{RESOURCES}/deviceclasses", device_class)
    node.start_dra_driver(DRIVER)
    yield DRIVER
    node.stop_dra_driver(DRIVER)
    cluster.api.delete(f"{RESOURCES}/deviceclasses/{DRIVER}")


def selector(expression: str) -> Object:
    return {"cel": {"expression": f'device.driver == "{DRIVER}" && {expression}'}}


def slice_of(node: Node, devices: dict[str, Object]) -> Object:
    """What a driver publishes: devices by name, each with its attributes."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node.name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node.name,
            "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": name, "attributes": {"id": {"string": name}, **more}}
                for name, more in devices.items()
            ],
        },
    }


def at(device: PciDevice) -> Object:
    """The standard attribute for where a device is."""
    return {"resource.kubernetes.io/pciBusID": {"string": device.address}}


@contextmanager
def published(cluster: Cluster, node: Node, devices: dict[str, Object]) -> Iterator[str]:
    """Returns the slice's path."""
    made = cluster.api.create(f"{RESOURCES}/resourceslices", slice_of(node, devices))
    path = f"{RESOURCES}/resourceslices/{made['metadata']['name']}"
    try:
        yield path
    finally:
        cluster.api.delete(path)


@contextmanager
def claiming(
    cluster: Cluster, node: Node, name: str, device: str, requests: dict[str, str]
) -> Iterator[None]:
    """A pod with a claim of its name, for which the scheduler takes that device."""
    node.write_claims(DRIVER, {f"default/{name}": [(node.name, device)]})
    wanted = selector(f'device.attributes["{DRIVER}"].id == "{device}"')
    exactly = {"deviceClassName": DRIVER, "selectors": [wanted]}
    request = {"name": "device", "exactly": exactly}
    cluster.api.create(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
    made = pod(name, requests, nodeSelector={"kubernetes.io/hostname": node.name})
    made["spec"]["resourceClaims"] = [{"name": "claim", "resourceClaimName": name}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "claim"}]
    cluster.create_pod(made)
    try:
        assert cluster.verdict(name, limit_s=60) == "Admitted"
        yield
    finally:
        cluster.delete_pod(name)
        cluster.until_gone(name)
        cluster.api.delete(f"{CLAIMS}/{name}")
        cluster.until_cleaned_up(node)


def held_by_driver(agent: Agent, name: str) -> tuple[Object, Object]:
    """The pod that holds a device of the driver, and the device, as they are published."""
    status = agent.placement()["status"]
    for found in status["pods"]:
        for held in found["containers"][0].get("devices", []):
            if (found["name"], held["resource"]) == (name, DRIVER):
                names = (DRIVER, held["ids"])
                return found, next(d for d in status["devices"] if (d["resource"], [d["id"]]) == names)
    raise Failed(f"no pod {name} with a device of {DRIVER} is published (yet)")


def test_a_claims_device_is_where_its_driver_publishes_it_to_be(
    cluster: Cluster, agent: Agent, driver: str, node: Node
) -> None:
    near, far = sorted(node.machine.nics, key=lambda nic: nic.numa_node)
    with published(cluster, node, {"nic": at(far)}) as path:
        with claiming(cluster, node, "claimed", "nic", {"cpu": "2", "memory": "1Gi"}):
            listed = node.podresources("get", "default", "claimed")["podResources"]["containers"][0]
            print(f"the kubelet lists {listed['dynamicResources']}")

            def is_at(nic: PciDevice) -> bool:
                _, device = held_by_driver(agent, "claimed")
                place = (device.get("pciAddress"), device.get("pciNumaNode"))
                return place == (nic.address, nic.numa_node)

            cluster.programs.until("the device is resolved", lambda: is_at(far))
            found, device = held_by_driver(agent, "claimed")
            assert device["id"] == f"{node.name}/nic"
            # The kubelet does not align claims: it takes CPUs of the first NUMA node.
            assert (found["numaNodes"], found["alignment"]) == ([0, 1], "Misaligned")
            moved = slice_of(node, {"nic": at(near)})["spec"]
            moved["pool"]["generation"] = 2
            cluster.api.merge(path, {"spec": moved})
            cluster.programs.until("the agent follows the driver", lambda: is_at(near))
            found, _ = held_by_driver(agent, "claimed")
            assert (found["numaNodes"], found["alignment"]) == ([0], "Aligned")


def test_a_device_that_its_driver_does_not_place_is_named_and_does_not_count(
    cluster: Cluster, agent: Agent, driver: str, node: Node
) -> None:
    with published(cluster, node, {"nowhere": {}}):
        with claiming(cluster, node, "lost", "nowhere", {"cpu": "2", "memory": "1Gi"}):
            cluster.programs.until("the device is named", lambda: held_by_driver(agent, "lost"))
            found, device = held_by_driver(agent, "lost")
            assert "pciAddress" not in device and device["numaNodes"] == []
            # As a device plugin's that has nothing to do with NUMA.
            assert (found["numaNodes"], found["alignment"]) == ([0], "Aligned")


def test_a_device_that_plugin_and_driver_both_gave_away_is_flagged(
    cluster: Cluster, agent: Agent, driver: str, node: Node
) -> None:
    cluster.create_pod(pod("by-plugin", {"cpu": "2", "memory": "1Gi", GPU: "1"}, node=node.name))
    assert cluster.verdict("by-plugin") == "Admitted"
    try:
        (given,) = node.podresources("get", "default", "by-plugin")["podResources"]["containers"][0][
            "devices"
        ]
        gpu = next(one for one in node.machine.pci if [one.gpu_uuid] == given["deviceIds"])
        with published(cluster, node, {"gpu": at(gpu)}):
            with claiming(cluster, node, "by-driver", "gpu", {"cpu": "2", "memory": "1Gi"}):
                said = agent.until_condition("TopologyConsistent", "False", "SourcesDisagree")
                assert "1 DeviceHeldTwice" in said
        agent.until_condition("TopologyConsistent", "True", "NoContradiction")
    finally:
        cluster.delete_pod("by-plugin")
        cluster.until_gone("by-plugin")
        cluster.until_cleaned_up(node)


def test_a_static_pod_has_both_uids_where_the_pods_may_be_read(
    cluster: Cluster, agent: Agent, node: Node
) -> None:
    manifest = node.tree / "var/lib/kubelet/manifests/static.yaml"
    manifest.write_text(yaml.safe_dump(pod("static", {"cpu": "2", "memory": "1Gi"})))
    name = f"static-{node.name}"
    try:
        mirror = cluster.programs.until("the mirror is there", lambda: cluster.pod(name))["metadata"]

        def published_as() -> Object | None:
            pods = agent.placement()["status"]["pods"]
            return next((one for one in pods if one["name"] == name), None)

        found = cluster.programs.until("the static pod is published", published_as)
        assert found["uid"] == mirror["uid"]
        assert found["kubeletUID"] == mirror["annotations"]["kubernetes.io/config.mirror"]
        agent.until_condition("StateKnown", "True", "AllRead")
    finally:
        manifest.unlink()
        cluster.until_gone(name)
        cluster.until_cleaned_up(node)
