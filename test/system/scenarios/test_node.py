"""What a node is to the machine that it runs on."""

from __future__ import annotations

from harness.cluster import Cluster


def test_a_node_cannot_set_the_kernel_of_this_machine(cluster: Cluster) -> None:
    """Kubelets do when they start; and most of /proc/sys is no namespace's."""
    tunables = ["vm/overcommit_memory", "kernel/panic", "kernel/keys/root_maxbytes"]
    for node in cluster.nodes.values():
        assert node.run("test", "-w", "/proc/sys/kernel/panic_print", check=False).returncode == 1
        for name in tunables:
            (mounted,) = node.run("findmnt", "-n", "-o", "SOURCE", f"/proc/sys/{name}").stdout.splitlines()
            assert mounted.endswith(f"{node.name}/proc/sys/{name}]"), "a file of the node's own"
