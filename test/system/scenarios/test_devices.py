"""Devices that fall ill or vanish."""

from __future__ import annotations

from pathlib import Path

from harness import truth
from harness.cluster import Cluster, pod
from harness.plumbline import dry_run, simulate

GPU = "nvidia.com/gpu"


def test_a_gpu_that_falls_ill_is_not_handed_out(cluster: Cluster, tmp_path: Path) -> None:
    node = cluster.nodes["no-smt"]
    ill, well = (device.id for device in node.machine.device_plugins()[GPU])
    wants_both = pod("wants-both", {"cpu": "1", "memory": "1Gi", GPU: "2"}, node=node.name)
    node.write_devices(GPU, unhealthy=[ill])
    try:
        cluster.programs.until(
            "the kubelet knows of the illness",
            lambda: (GPU, ill) not in truth.expected(node)["devices"],
        )
        placement = dry_run(node)
        assert truth.differences(truth.published(placement), truth.expected(node)) == []
        assert (GPU, well) in truth.published(placement)["devices"]
        predicted = simulate(placement, wants_both, tmp_path)
        cluster.create_pod(wants_both)
        verdict = cluster.verdict("wants-both")
        cluster.delete_pod("wants-both")
        assert (verdict, predicted["reason"]) == ("UnexpectedAdmissionError", "UnexpectedAdmissionError")
    finally:
        node.write_devices(GPU)
        cluster.programs.until(
            "the kubelet knows of the recovery", lambda: (GPU, ill) in truth.expected(node)["devices"]
        )
