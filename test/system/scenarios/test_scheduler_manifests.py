"""The extender's manifests, applied with kubectl, and what its account may do."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.api import Api, ApiError, Object
from harness.cluster import AGENT_NAMESPACE, Cluster, pod
from harness.installation import PLACEMENTS, Installation
from harness.manifests import MANIFESTS, Kubectl, kustomization, names, rendered

SCHEDULER = MANIFESTS / "scheduler"
ACCOUNT = "plumbline-scheduler"
WAKE_UP = "plumbline.dev/wake-up"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/plumbline-scheduler-nodes"
NODE = "/api/v1/nodes/snc"


def refusal(ask: Any) -> str:
    """The API server's word on what it forbids."""
    with pytest.raises(ApiError) as refused:
        ask()
    assert refused.value.code == 403, refused.value
    message: str = refused.value.status["message"]
    return message


@pytest.fixture(scope="module")
def extender(
    cluster: Cluster, kubectl: Kubectl, installed: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The API server as the extender may speak to it, once its policy is in force."""
    images = [{"name": "plumbline-scheduler", "newName": "localhost/app", "newTag": "1"}]
    folder = kustomization(
        tmp_path_factory.mktemp("extender"), "scheduler/overlays/beside-kube-scheduler", images=images
    )
    kubectl("apply", "-k", str(folder))
    accounts = f"/api/v1/namespaces/{AGENT_NAMESPACE}/serviceaccounts"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = cluster.api.create(f"{accounts}/{ACCOUNT}/token", request)
    api = cluster.control_plane.with_token(answer["status"]["token"])

    def policy_is_in_force() -> bool:
        try:
            api.merge(NODE, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
        except ApiError as error:
            return error.code == 403 and "may only change the annotation" in f"{error}"
        return False

    cluster.programs.until("the policy on nodes is in force", policy_is_in_force)
    yield api
    kubectl("delete", "-k", str(folder), "--wait")


@pytest.mark.parametrize("overlay", names(SCHEDULER / "overlays"))
def test_every_overlay_of_the_extender_is_accepted(
    cluster: Cluster, kubectl: Kubectl, installed: Installation, overlay: str
) -> None:
    items = rendered(kubectl, SCHEDULER / "overlays" / overlay)
    kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", document=yaml.safe_dump_all(items)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("overlay", "component"),
    [
        ("second-scheduler", "observe"),
        ("second-scheduler", "evict"),
        ("second-scheduler", "network-policy"),
        ("beside-kube-scheduler", "evict"),
        ("https", "evict"),
        ("https", "network-policy"),
    ],
)
def test_components_of_the_extender_are_accepted(
    cluster: Cluster,
    kubectl: Kubectl,
    installed: Installation,
    run_folder: Path,
    overlay: str,
    component: str,
) -> None:
    folder = kustomization(
        run_folder / f"manifests/{overlay}-{component}",
        f"scheduler/overlays/{overlay}",
        [f"../scheduler/components/{component}"],
    )
    items = rendered(kubectl, folder)
    if component == "evict":
        (workload,) = (i for i in items if i["kind"] in ("Deployment", "DaemonSet"))
        assert workload["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--evict"
    kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", document=yaml.safe_dump_all(items)
    )  # fmt: skip


def test_the_api_server_finds_nothing_wrong_with_the_expressions_on_nodes(
    cluster: Cluster, extender: Api
) -> None:
    def checked() -> Object | None:
        policy = cluster.api.get(POLICY)
        return policy["status"] if policy.get("status", {}).get("observedGeneration") else None

    assert cluster.programs.until("the policy is checked", checked).get("typeChecking", {}) == {}


def test_the_extender_changes_one_annotation_of_a_node_and_nothing_else(
    cluster: Cluster, extender: Api
) -> None:
    for value in ("1", "2", None):
        extender.merge(NODE, {"metadata": {"annotations": {WAKE_UP: value}}})
    changes: list[Object] = [
        {"metadata": {"annotations": {"another": "one"}}},
        {"metadata": {"annotations": {WAKE_UP: "3", "another": "one"}}},
        {"metadata": {"labels": {"plumbline.dev/pool": "gpu"}}},
        {"metadata": {"finalizers": ["plumbline.dev/stay"]}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
    ]
    for change in changes:
        assert "may only change the annotation" in refusal(lambda: extender.merge(NODE, change))
    assert "cannot" in refusal(lambda: extender.merge(f"{NODE}/status", {"status": {"phase": "Running"}}))
    assert "cannot delete" in refusal(lambda: extender.delete(NODE))


def test_nobody_else_is_hindered_from_changing_a_node(cluster: Cluster, extender: Api) -> None:
    for label in ("yes", None):
        cluster.api.merge(NODE, {"metadata": {"labels": {"seen": label}}})


def test_the_extender_reads_what_its_accounts_are_made_of(cluster: Cluster, extender: Api) -> None:
    for path in (
        "/api/v1/nodes",
        "/api/v1/pods",
        PLACEMENTS,
        "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
        "/apis/policy/v1/poddisruptionbudgets",
        f"/apis/coordination.k8s.io/v1/namespaces/{AGENT_NAMESPACE}/leases",
    ):
        extender.items(path)
    # Only this one there.
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    extender.items(leases, fieldSelector="metadata.name=kube-scheduler")
    assert "cannot list" in refusal(lambda: extender.items(leases))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/secrets",
        "/api/v1/configmaps",
        f"/api/v1/namespaces/{AGENT_NAMESPACE}/secrets",
        "/api/v1/nodes/snc/proxy/pods",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    ],
)
def test_the_extender_does_not_read(cluster: Cluster, extender: Api, path: str) -> None:
    assert "cannot" in refusal(lambda: extender.get(path))


def test_the_extender_evicts_and_deletes_nothing_unless_it_is_asked_to(
    cluster: Cluster, extender: Api
) -> None:
    cluster.create_pod(pod("stays", {}, node="snc"))
    path = "/api/v1/namespaces/default/pods/stays"
    try:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "stays", "namespace": "default"},
        }
        assert "cannot create" in refusal(lambda: extender.create(f"{path}/eviction", eviction))
        assert "cannot delete" in refusal(lambda: extender.delete(path))
        assert "cannot patch" in refusal(lambda: extender.merge(path, {"metadata": {"labels": {"a": "b"}}}))
    finally:
        cluster.delete_pod("stays")
        cluster.until_gone("stays")


def test_what_the_script_makes_is_trusted_by_both_sides(tmp_path: Path) -> None:
    script = MANIFESTS.parent / "scripts/scheduler-certificates"
    subprocess.run([script, tmp_path, "gpu.example", "10.0.0.7"], check=True, capture_output=True)
    for file, purpose in (("tls", "sslserver"), ("client", "sslclient")):
        subprocess.run(
            [
                "openssl",
                "verify",
                "-CAfile",
                tmp_path / "ca.crt",
                "-purpose",
                purpose,
                tmp_path / f"{file}.crt",
            ],
            check=True,
            capture_output=True,
        )
    alternatives = subprocess.run(
        ["openssl", "x509", "-in", tmp_path / "tls.crt", "-noout", "-ext", "subjectAltName"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "DNS:plumbline-scheduler.plumbline-system.svc," in alternatives
    assert "DNS:gpu.example" in alternatives and "IP Address:10.0.0.7" in alternatives
    authority = (tmp_path / "ca.crt").read_bytes()
    subprocess.run([script, tmp_path], check=True, capture_output=True)
    assert (tmp_path / "ca.crt").read_bytes() == authority


def test_both_ready_configurations_leave_pods_without_devices_alone() -> None:
    for file in ("overlays/second-scheduler/enforce.yaml", "components/observe/observe.yaml"):
        configuration = yaml.safe_load((SCHEDULER / file).read_text())
        (extender,) = configuration["extenders"]
        assert "nvidia.com/gpu" in [r["name"] for r in extender["managedResources"]], json.dumps(extender)
        assert extender["nodeCacheCapable"] is True
        # An extender that may be passed over must not be the one that binds.
        assert extender["ignorable"] != ("bindVerb" in extender)
