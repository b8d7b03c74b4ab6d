"""The dry run beside the kubelet's own state files and podresources."""

from __future__ import annotations

import os
import time

import pytest
import yaml

from harness import truth
from harness.api import Object
from harness.cluster import Cluster
from harness.node import Node
from harness.plumbline import both_objects, dry_run, dry_run_elsewhere
from harness.presets import USUAL
from harness.random_pods import RandomPods

SECONDS = float(os.environ["SYSTEM_RANDOM_SECONDS"])  # of random pods, for each node
SEED = int(os.environ["SYSTEM_SEED"])


def compare(node: Node, before: list[Object]) -> None:
    """The dry runs `before` the kubelet cleaned up, and those of now, say what the kubelet says."""
    word = truth.Word(node)
    looks = [*before, dry_run(node), dry_run_elsewhere(node)]
    for look, placement in enumerate(looks, start=1):
        # However much the kubelet is writing: a dry run waits for the end of a change.
        differences = truth.not_settled(placement) + word.against_placement(placement)
        if differences:  # what there is to find out more from
            print(
                yaml.safe_dump({"look": placement["status"], "kubelet": node.state_file("cpu_manager_state")})
            )
        assert not differences, f"look {look}, of which {len(before)} before the clean-up: {differences}"
    nrt, _ = both_objects(node)
    assert word.against_nrt(nrt) == []


@pytest.mark.parametrize("name", USUAL)
def test_the_dry_run_says_what_the_kubelet_says_while_random_pods_come_and_go(
    cluster: Cluster, name: str
) -> None:
    node = cluster.nodes[name]
    pods = RandomPods(cluster, node, SEED)
    end = time.monotonic() + SECONDS
    points = 0
    while time.monotonic() < end or pods.should_go_on():
        pods.step()
        before = [dry_run(node), dry_run_elsewhere(node)]
        cluster.until_cleaned_up(node)
        compare(node, before)
        points += 1
    pods.delete_all()
    cluster.until_cleaned_up(node)
    compare(node, [])
    print(f"{name}: {points} quiet points, verdicts {pods.verdicts}")
    assert pods.verdicts["Admitted"] > 0
