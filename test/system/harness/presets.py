"""Nodes to choose from: different machines, different settings."""

from __future__ import annotations

from .machine import MACHINES
from .node import NodeSpec

_SPECS = [
    # As strict as it gets.
    NodeSpec("two-socket", MACHINES["two-socket"], cpu_options={"full-pcpus-only": "true"}),
    NodeSpec("snc", MACHINES["snc"], policy="restricted", scope="container", signed_certificate=True),
    NodeSpec("eight", MACHINES["eight"], policy="best-effort"),
    NodeSpec("no-smt", MACHINES["no-smt"], policy="none", scope="container"),
    NodeSpec("misled", MACHINES["misled"], policy="restricted"),
    NodeSpec(
        "pod-level",
        MACHINES["two-socket"],
        policy="restricted",
        feature_gates={"PodLevelResources": True, "PodLevelResourceManagers": True},
    ),
    NodeSpec("virtual", MACHINES["virtual"]),
    NodeSpec("cxl", MACHINES["cxl"]),
    NodeSpec("sparse", MACHINES["sparse"]),
    NodeSpec("offline", MACHINES["offline"]),
]

NODES = {spec.name: spec for spec in _SPECS}
# Of the cluster that the scenarios share.
USUAL = ["two-socket", "snc", "eight", "no-smt", "misled", "pod-level"]
