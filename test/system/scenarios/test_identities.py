"""Who may ask what: agents' tokens, and kubelets that ask the API server about whoever calls them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
import requests

from harness.api import Api, ApiError, Object, get_unverified
from harness.cluster import AGENT_ACCOUNT, AGENT_NAMESPACE, Cluster, pod
from harness.node import KUBELET_PORT, Node

NODES_CONFIGZ = {"apiGroups": [""], "resources": ["nodes/configz"], "verbs": ["get"]}


@pytest.fixture(scope="module")
def agents(cluster: Cluster) -> Iterator[Cluster]:
    """The agents' service account, and on each node a pod of it."""
    api = cluster.api
    api.create("/api/v1/namespaces", {"metadata": {"name": AGENT_NAMESPACE}})
    accounts = f"/api/v1/namespaces/{AGENT_NAMESPACE}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": AGENT_ACCOUNT}})
    for node in cluster.nodes:
        name = f"{AGENT_ACCOUNT}-{node}"
        made = pod(name, {}, node=node, namespace=AGENT_NAMESPACE, serviceAccountName=AGENT_ACCOUNT)
        cluster.create_pod(made)
        assert cluster.verdict(name, AGENT_NAMESPACE) == "Admitted"
    yield cluster
    api.delete(f"/api/v1/namespaces/{AGENT_NAMESPACE}")
    cluster.programs.until(
        "the agents' namespace is gone", lambda: not api.exists(f"/api/v1/namespaces/{AGENT_NAMESPACE}")
    )


def granted(cluster: Cluster, name: str, rules: list[Object]) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    cluster.api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    cluster.api.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": AGENT_ACCOUNT, "namespace": AGENT_NAMESPACE}],
        },
    )


def revoked(cluster: Cluster, name: str) -> None:
    for kind in ("clusterrolebindings", "clusterroles"):
        cluster.api.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}/{name}")


def review(cluster: Cluster, token: str) -> Object:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status: Object = cluster.api.create("/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]
    return status


def configz(node: Node, token: str | None) -> requests.Response:
    """Asked of the kubelet itself, as curl -k would."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return get_unverified(f"https://{node.address}:{KUBELET_PORT}/configz", headers=headers)


def test_a_token_for_an_agents_pod_names_the_pod_and_its_node(agents: Cluster) -> None:
    for node in agents.nodes:
        user = review(agents, agents.agent_token(node))["user"]
        assert user["username"] == f"system:serviceaccount:{AGENT_NAMESPACE}:{AGENT_ACCOUNT}"
        assert user["extra"]["authentication.kubernetes.io/pod-name"] == [f"{AGENT_ACCOUNT}-{node}"]
        assert user["extra"]["authentication.kubernetes.io/node-name"] == [node]


def test_a_token_ends_with_its_pod(agents: Cluster) -> None:
    node = next(iter(agents.nodes))
    agents.create_pod(
        pod("short-lived", {}, node=node, namespace=AGENT_NAMESPACE, serviceAccountName=AGENT_ACCOUNT)
    )
    token = agents.token_of_pod("short-lived", AGENT_NAMESPACE, AGENT_ACCOUNT)
    assert review(agents, token)["authenticated"]
    agents.delete_pod("short-lived", AGENT_NAMESPACE)
    agents.until_gone("short-lived", AGENT_NAMESPACE)
    agents.programs.until("the token is refused", lambda: not review(agents, token).get("authenticated"))


def test_an_agent_may_only_do_what_its_role_says(agents: Cluster) -> None:
    agent: Api = agents.as_agent("snc")
    with pytest.raises(ApiError) as refused:
        agent.items("/api/v1/namespaces/kube-system/secrets")
    assert refused.value.code == 403


@pytest.mark.parametrize("name", ["two-socket", "snc"])
def test_a_kubelet_tells_its_configuration_only_to_who_may_read_it(agents: Cluster, name: str) -> None:
    node = agents.nodes[name]
    token = agents.agent_token(name)
    assert configz(node, None).status_code == 401
    assert configz(node, "not-a-token").status_code == 401
    assert configz(node, token).status_code == 403
    granted(agents, "configz-reader", [NODES_CONFIGZ])
    try:
        # Kubelets remember a refusal for half a minute; a fresh token is another caller.
        answer = agents.programs.until(
            "the kubelet lets the agent read its configuration",
            lambda: answer if (answer := configz(node, agents.agent_token(name))).ok else None,
            limit_s=60,
        )
    finally:
        revoked(agents, "configz-reader")
    assert answer.json()["kubeletconfig"]["topologyManagerPolicy"] == node.spec.policy


def test_a_kubelets_certificate_is_its_own_or_the_clusters_as_it_was_set(cluster: Cluster) -> None:
    authority = cluster.control_plane.pki.ca
    for node in cluster.nodes.values():
        served = ssl.get_server_certificate((node.address, KUBELET_PORT))
        own = node.tree / "var/lib/kubelet/pki/kubelet.crt"
        if node.spec.signed_certificate:
            ssl.get_server_certificate((node.address, KUBELET_PORT), ca_certs=str(authority))
        else:
            with pytest.raises(ssl.SSLCertVerificationError):
                ssl.get_server_certificate((node.address, KUBELET_PORT), ca_certs=str(authority))
            assert der_of(served) in {der_of(part) for part in certificates(own.read_text())}
    assert {node.spec.signed_certificate for node in cluster.nodes.values()} == {True, False}


def certificates(pem: str) -> list[str]:
    end = "-----END CERTIFICATE-----"
    return [part + end for part in pem.split(end) if "BEGIN CERTIFICATE" in part]


def der_of(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.strip())
