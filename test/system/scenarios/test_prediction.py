"""The prediction beside running kubelets: before each of many random pods `plumbline simulate` is asked
what the node's kubelet will answer, from what the agent shows of the node at that moment."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from harness import cpus, truth
from harness.api import Object
from harness.cluster import Cluster
from harness.node import Node
from harness.plumbline import dry_run, simulate
from harness.presets import USUAL
from harness.random_pods import RandomPods

SECONDS = float(os.environ["SYSTEM_RANDOM_SECONDS"])  # of random pods, for each node
SEED = int(os.environ["SYSTEM_SEED"])


def predicted_holdings(containers: list[Object]) -> truth.Facts:
    """By container, as truth.listed has it."""
    return {
        container["name"]: {
            "CPUs": container["cpus"],
            "memory": sorted(
                (block["type"], truth.bytes_of(block["size"]), block["numaNodes"])
                for block in container["memory"]
                if block["size"] != "0"
            ),
            "devices": [(group["resource"], id) for group in container["devices"] for id in group["ids"]],
        }
        for container in containers
    }


def counted(node: Node, containers: truth.Facts, predicted: list[Object]) -> truth.Facts:
    """With the number of devices in place of their ids: which of several alike is given is the plugin's
    affair. Where the merged hint is one NUMA node it is their number there, else how many there are."""
    claims = {
        (resource, device.id): device.numa_node
        for resource, devices in node.machine.device_plugins().items()
        for device in devices
    }
    on_one = {one["name"] for one in predicted if len(one.get("affinity", [])) == 1}
    return {
        name: {
            **held,
            "devices": Counter(
                (device[0], claims[device] if name in on_one else None) for device in held["devices"]
            ),
        }
        for name, held in containers.items()
    }


def of_a_pod_with_resources_of_its_own(made: Object, predicted: Object, holdings: truth.Facts) -> truth.Facts:
    """As the kubelet lists it: the whole under "", and nothing for a container that shares it."""
    whole = {
        "CPUs": cpus.render(cpu for part in predicted["held"] for cpu in cpus.parse(part["cpus"])),
        "memory": sorted(
            (block["type"], truth.bytes_of(block["size"]), part["numaNodes"])
            for part in predicted["held"]
            for block in part["memory"]
        ),
        "devices": [],
    }
    for one in made["spec"]["containers"]:
        if "cpu" not in one["resources"]["requests"]:
            holdings[one["name"]] |= {"CPUs": "", "memory": []}
    return {"": whole, **holdings}


def that_stay(pod: Object) -> list[str]:
    """The containers that are there when the pod runs: others are listed no more."""
    sidecars = [one for one in pod["spec"].get("initContainers", []) if one.get("restartPolicy") == "Always"]
    return [one["name"] for one in [*sidecars, *pod["spec"]["containers"]]]


@pytest.mark.parametrize("name", USUAL)
def test_the_kubelet_answers_as_predicted(cluster: Cluster, name: str, tmp_path: Path) -> None:
    node = cluster.nodes[name]
    pods = RandomPods(cluster, node, SEED + 1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or pods.should_go_on():
        made = pods.any_pod()
        predicted = simulate(dry_run(node), made, tmp_path)
        verdict = pods.create(made)
        why = f"{made['spec']}: {predicted}"
        if verdict == "Admitted":
            assert predicted["verdict"] == "Admitted", why
            holdings = predicted_holdings(predicted["containers"])
            if "resources" in made["spec"]:
                holdings = of_a_pod_with_resources_of_its_own(made, predicted, holdings)
            staying = {name: held for name, held in holdings.items() if name in ["", *that_stay(made)]}
            expected = counted(node, staying, predicted["containers"])
            listed = truth.listed(node)[f"default/{made['metadata']['name']}"]
            seen = counted(node, listed, predicted["containers"])
            assert seen == {name: held for name, held in expected.items() if any(held.values())}, why
        elif verdict.startswith("OutOf"):
            # The kubelet looks at the node's sums after its managers, and NodePlacement does not tell them.
            assert predicted["verdict"] == "Admitted", why
        else:
            assert (predicted["verdict"], predicted["reason"]) == ("Refused", verdict), why
        pods.delete_some()
    pods.delete_all()
    print(f"{name}: {sum(pods.verdicts.values())} admissions predicted: {pods.verdicts}")
    assert pods.verdicts["Admitted"] > 0
