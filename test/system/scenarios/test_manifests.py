"""The manifests, applied with kubectl, and what an agent may do with them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.api import Api, ApiError, Object, get_unverified
from harness.cluster import AGENT_ACCOUNT, AGENT_NAMESPACE, Cluster, pod
from harness.installation import (
    CRDS,
    LEASES,
    MANAGER,
    NRTS,
    PLACEMENTS,
    Installation,
    agent_of,
    agents_pods,
    agents_token,
)
from harness.manifests import MANIFESTS, Kubectl, daemon_set, kustomization, names, rendered
from harness.node import KUBELET_PORT
from harness.plumbline import both_objects, dry_run, dry_run_as_pod

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


def refusal(ask: Any) -> str:
    """The API server's word on what it forbids."""
    with pytest.raises(ApiError) as refused:
        ask()
    assert refused.value.code == 403, refused.value
    message: str = refused.value.status["message"]
    return message


# Applying


def test_the_definitions_are_established_and_their_names_accepted(
    cluster: Cluster, installed: Installation
) -> None:
    for name in ("nodeplacements.plumbline.dev", "noderesourcetopologies.topology.node.k8s.io"):
        conditions = {c["type"]: c for c in cluster.api.get(f"{CRDS}/{name}")["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True"
        assert conditions["NamesAccepted"]["status"] == "True"
        # A schema that is not structural would be told here.
        assert "NonStructuralSchema" not in conditions


def test_the_api_server_finds_nothing_wrong_with_the_policys_expressions(
    cluster: Cluster, installed: Installation
) -> None:
    def checked() -> Object | None:
        policy = cluster.api.get(f"{POLICIES}/plumbline-agent")
        return policy["status"] if policy.get("status", {}).get("observedGeneration") else None

    assert cluster.programs.until("the policy is checked", checked).get("typeChecking", {}) == {}


@pytest.mark.parametrize("overlay", names(MANIFESTS / "overlays"))
def test_every_overlay_is_accepted(
    cluster: Cluster, kubectl: Kubectl, installed: Installation, overlay: str
) -> None:
    items = rendered(kubectl, MANIFESTS / "overlays" / overlay)
    # OpenShift's own kinds are unknown here.
    known = [item for item in items if not item["apiVersion"].startswith("security.openshift.io/")]
    kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", document=yaml.safe_dump_all(known),
    )  # fmt: skip


@pytest.mark.parametrize("component", names(MANIFESTS / "components"))
def test_every_component_is_accepted(
    cluster: Cluster, kubectl: Kubectl, installed: Installation, run_folder: Path, component: str
) -> None:
    folder = kustomization(run_folder / "manifests" / component, "base", [component])
    kubectl(
        "apply", "--dry-run=server", "--validate=strict",
        "-k", str(folder),
    )  # fmt: skip


def test_an_agent_runs_on_every_node_and_holds_nothing_exclusively(
    cluster: Cluster, installed: Installation
) -> None:
    for node, name in agents_pods(cluster).items():
        assert cluster.pod(name, AGENT_NAMESPACE)["status"]["qosClass"] == "Burstable"
        listed = cluster.nodes[node].podresources("list")["podResources"]
        (agent,) = (one for one in listed if one["name"] == name)
        for container in agent["containers"]:
            assert not container.get("cpuIds") and not container.get("memory")


# What the pods can see


def comparable(placement: Object) -> Object:
    status = copy.deepcopy(placement["status"])
    del status["observedAt"]
    return dict(status)


def test_an_agent_without_any_capability_sees_all_through_the_daemonsets_mounts(
    cluster: Cluster, kubectl: Kubectl, installed: Installation
) -> None:
    spec = daemon_set(kubectl, installed.overlay)["spec"]["template"]["spec"]
    for node in cluster.nodes.values():
        assert comparable(dry_run_as_pod(node, spec)) == comparable(dry_run(node))


def test_a_minimal_agent_says_what_it_does_not_know(
    cluster: Cluster, kubectl: Kubectl, installed: Installation
) -> None:
    spec = daemon_set(kubectl, MANIFESTS / "overlays/minimal")["spec"]["template"]["spec"]
    node = cluster.nodes["two-socket"]
    seen, full = (one["status"] for one in (dry_run_as_pod(node, spec), dry_run(node)))
    conditions = {c["type"]: c["status"] for c in seen["conditions"]}
    assert conditions["PodResourcesReachable"] == "True"
    assert conditions["StateKnown"] != "True"
    assert conditions["ConfigKnown"] != "True"
    assert seen["devices"] == full["devices"]
    assert [n["cpus"] for n in seen["numaNodes"]] == [n["cpus"] for n in full["numaNodes"]]


# What agents write


def published(cluster: Cluster, node: str, agent: Api) -> tuple[Object, Object]:
    """What the dry run shows of the node, written as its agent does; returns what was written."""
    nrt, placement = both_objects(cluster.nodes[node])
    uid = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    for path, item in ((NRTS, nrt), (PLACEMENTS, placement)):
        item["metadata"]["ownerReferences"] = [owner]
        agent.apply(f"{path}/{node}", item, MANAGER)
    agent.apply(f"{PLACEMENTS}/{node}/status", placement, MANAGER)
    return nrt, placement


@pytest.fixture(scope="module")
def objects(cluster: Cluster, installed: Installation) -> Iterator[dict[str, tuple[Object, Object]]]:
    """Of each node, with two pods on one of them; what was written."""
    pods = {
        "pinned": {"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "1"},
        "small": {"cpu": "2", "memory": "1Gi"},
    }
    for name, requests in pods.items():
        cluster.create_pod(pod(name, requests, node="two-socket"))
        assert cluster.verdict(name) == "Admitted"
    yield {node: published(cluster, node, agent_of(cluster, node)) for node in cluster.nodes}
    for name in pods:
        cluster.delete_pod(name)
        cluster.until_gone(name)


def without_metadata(item: Object) -> Object:
    return {key: value for key, value in item.items() if key != "metadata"}


def test_the_api_server_keeps_every_field_that_the_agent_writes(
    cluster: Cluster, objects: dict[str, tuple[Object, Object]]
) -> None:
    for node, (nrt, placement) in objects.items():
        assert without_metadata(cluster.api.get(f"{NRTS}/{node}")) == without_metadata(nrt)
        assert without_metadata(cluster.api.get(f"{PLACEMENTS}/{node}")) == without_metadata(placement)
    assert len(objects["two-socket"][1]["status"]["pods"]) == 2


def test_the_definition_declares_every_field_that_the_agent_knows() -> None:
    """Also those that no node here has, as a static pod's kubeletUID."""
    writer = (MANIFESTS.parent / "placement/encode.cc").read_text()
    writer = writer[writer.index("void WriteManager") : writer.index("void WriteOwner")]
    written = set(re.findall(r'f\.\w+\("(\w+)"', writer))
    crd = yaml.safe_load((MANIFESTS / "base/crd-nodeplacements.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert len(written) > 50
    assert written - set(properties(schema)) == set()


def properties(schema: Object) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from properties(inner)
    if "items" in schema:
        yield from properties(schema["items"])


def test_250_pods_fit_into_one_object(cluster: Cluster, objects: dict[str, tuple[Object, Object]]) -> None:
    node = "two-socket"
    crowded = copy.deepcopy(objects[node][1])
    one = next(p for p in crowded["status"]["pods"] if p["name"] == "pinned")
    crowded["status"]["pods"] = [{**one, "name": f"{one['name']}-7d9c5b6f4-{i:05}"} for i in range(250)]
    crowded["status"]["knownPods"] = [one["uid"]] * 250
    agent = agent_of(cluster, node)
    agent.apply(f"{PLACEMENTS}/{node}/status", crowded, MANAGER)
    stored = cluster.api.get(f"{PLACEMENTS}/{node}")
    size = len(json.dumps(stored, separators=(",", ":")))
    print(f"a NodePlacement with 250 pods has {size} bytes")
    assert stored["status"] == crowded["status"]
    assert size < 256 * 1024
    agent.apply(f"{PLACEMENTS}/{node}/status", objects[node][1], MANAGER)


def test_kubectl_prints_policy_scope_pods_and_what_is_free(
    kubectl: Kubectl, objects: dict[str, tuple[Object, Object]]
) -> None:
    for resource in ("nodeplacements", "noderesourcetopologies", "plumbline"):
        print(f"$ kubectl get {resource}\n{kubectl('get', resource)}")
    header, *rows = kubectl("get", "nodeplacements").splitlines()
    assert header.split() == [
        "NAME",
        "POLICY",
        "SCOPE",
        "PODS",
        "ALIGNED",
        "MISALIGNED",
        "DRIFTED",
        "FREE",
        "AGE",
    ]
    of = {row.split()[0]: row for row in rows}
    free = objects["two-socket"][1]["status"]["summary"]["free"]
    assert of["two-socket"].split()[1:7] == ["single-numa-node", "pod", "2", "2", "0", "0"]
    assert free in of["two-socket"]

    header, *rows = kubectl("get", "noderesourcetopologies").splitlines()
    assert header.split() == ["NAME", "POLICY", "SCOPE", "FREE", "AGE"]
    of = {row.split()[0]: row for row in rows}
    assert of["two-socket"].split()[1:3] == ["single-numa-node", "pod"]


def test_the_old_version_of_noderesourcetopology_is_served_to_its_readers(
    cluster: Cluster, objects: dict[str, tuple[Object, Object]]
) -> None:
    old = cluster.api.get(f"{NRTS.replace('v1alpha2', 'v1alpha1')}/two-socket")
    assert old["topologyPolicies"] == ["SingleNUMANodePodLevel"]
    assert old["zones"] == objects["two-socket"][0]["zones"]


def test_a_field_that_the_definition_lacks_is_refused_in_an_apply_and_dropped_otherwise(
    cluster: Cluster, objects: dict[str, tuple[Object, Object]]
) -> None:
    agent, one = agent_of(cluster, "snc"), f"{PLACEMENTS}/snc/status"
    placement = copy.deepcopy(objects["snc"][1])
    placement["status"]["fromTheFuture"] = 1
    with pytest.raises(ApiError, match="field not declared in schema") as refused:
        agent.apply(one, placement, MANAGER)
    assert refused.value.code == 500
    stored = cluster.api.merge(one, {"status": {"fromTheFuture": 1}})
    assert "fromTheFuture" not in stored["status"]


# What agents may not


def named(name: str) -> Object:
    return {"apiVersion": "plumbline.dev/v1alpha1", "kind": "NodePlacement", "metadata": {"name": name}}


def topology(name: str) -> Object:
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "zones": [{"name": "node-0", "type": "Node"}],
    }


def lease(name: str) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name},
    }


def test_an_agent_writes_no_other_nodes_objects(
    cluster: Cluster, objects: dict[str, tuple[Object, Object]]
) -> None:
    agent = agent_of(cluster, "snc")
    reason = "the agent of node snc may not write objects of eight"
    forged = {**named("eight"), "status": {"revision": 1}}
    assert reason in refusal(lambda: agent.apply(f"{PLACEMENTS}/eight", forged, MANAGER, force="true"))
    assert reason in refusal(lambda: agent.apply(f"{PLACEMENTS}/eight/status", forged, MANAGER, force="true"))
    assert reason in refusal(lambda: agent.apply(f"{NRTS}/eight", topology("eight"), MANAGER, force="true"))
    assert reason in refusal(lambda: agent.apply(f"{LEASES}/eight", lease("eight"), MANAGER))
    assert reason in refusal(lambda: agent.merge(f"{PLACEMENTS}/eight", {"metadata": {"labels": {"a": "b"}}}))
    assert reason in refusal(lambda: agent.create(LEASES, lease("eight")))
    agent.apply(f"{LEASES}/snc", lease("snc"), MANAGER)


def test_an_agent_creates_no_object_that_is_named_after_no_node(
    cluster: Cluster, installed: Installation
) -> None:
    agent = agent_of(cluster, "snc")
    nameless = {**named(""), "metadata": {"generateName": "snc"}}
    assert "may not write" in refusal(lambda: agent.create(PLACEMENTS, nameless))


def test_an_agent_deletes_nothing(cluster: Cluster, objects: dict[str, tuple[Object, Object]]) -> None:
    agent = agent_of(cluster, "snc")
    for path in (PLACEMENTS, NRTS):
        for node in ("snc", "eight"):
            assert "cannot delete resource" in refusal(lambda: agent.delete(f"{path}/{node}"))


def test_even_an_agent_that_may_delete_does_not_delete_another_nodes_objects(
    cluster: Cluster, kubectl: Kubectl, objects: dict[str, tuple[Object, Object]]
) -> None:
    account = f"system:serviceaccount:{AGENT_NAMESPACE}:{AGENT_ACCOUNT}"
    kubectl(
        "create", "clusterrole", "deleter", "--verb=delete,deletecollection",
        "--resource=nodeplacements.plumbline.dev",
    )  # fmt: skip
    kubectl("create", "clusterrolebinding", "deleter", "--clusterrole=deleter", f"--user={account}")
    try:
        agent = agent_of(cluster, "snc")
        said = refusal(lambda: agent.delete(f"{PLACEMENTS}/eight"))
        assert "the agent of node snc may not write objects of eight" in said
        assert "may not write more than its own" in refusal(lambda: agent.delete(PLACEMENTS))
        assert cluster.api.exists(f"{PLACEMENTS}/eight")
        agent.delete(f"{PLACEMENTS}/snc")
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            kubectl("delete", kind, "deleter")
        published(cluster, "snc", agent_of(cluster, "snc"))


def test_a_token_that_is_bound_to_no_pod_writes_nothing(
    cluster: Cluster, objects: dict[str, tuple[Object, Object]]
) -> None:
    accounts = f"/api/v1/namespaces/{AGENT_NAMESPACE}/serviceaccounts"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = cluster.api.create(f"{accounts}/{AGENT_ACCOUNT}/token", request)
    anybody = cluster.control_plane.with_token(answer["status"]["token"])
    placement = objects["snc"][1]
    said = refusal(lambda: anybody.apply(f"{PLACEMENTS}/snc/status", placement, MANAGER))
    assert "the token of plumbline-agent names no node" in said


def test_an_agent_reads_its_node_and_what_its_kubelet_is_set_to(
    cluster: Cluster, installed: Installation
) -> None:
    node = cluster.nodes["snc"]
    assert agent_of(cluster, node.name).get(f"/api/v1/nodes/{node.name}")["metadata"]["uid"]

    def configuration() -> Object | None:
        # A kubelet remembers a refusal for half a minute; a fresh token is another caller.
        token = agents_token(cluster, node.name)
        url = f"https://{node.address}:{KUBELET_PORT}/configz"
        answer = get_unverified(url, headers={"Authorization": f"Bearer {token}"})
        return answer.json() if answer.ok else None

    told = cluster.programs.until("the kubelet tells its configuration", configuration, limit_s=60)
    assert told["kubeletconfig"]["topologyManagerPolicy"] == node.spec.policy


def test_an_agent_reports_on_pods_of_any_namespace(cluster: Cluster, installed: Installation) -> None:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "some-pod"}
    event = {"metadata": {"generateName": "some-pod."}, "involvedObject": about, "reason": "Misaligned"}
    events = "/api/v1/namespaces/default/events"
    made = agent_of(cluster, "snc").create(events, event)
    cluster.api.delete(f"{events}/{made['metadata']['name']}")


def test_for_kais_annotation_an_agent_changes_annotations_of_its_own_nodes_pods(
    cluster: Cluster, kubectl: Kubectl, installed: Installation, run_folder: Path
) -> None:
    folder = kustomization(run_folder / "manifests/kai", "overlays/default", ["kai-annotation"])
    # The DaemonSet itself is left as it is: the agents need not restart.
    kinds = ("ClusterRole", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    granted = [item for item in rendered(kubectl, folder) if item["kind"] in kinds]
    kubectl("apply", "-f", "-", document=yaml.safe_dump_all(granted))
    pods, nodes = "/api/v1/namespaces/default/pods", ("snc", "eight")
    annotated = {"metadata": {"annotations": {"kai.scheduler/numa-placement-observed": "[]"}}}
    try:
        for node in nodes:
            cluster.create_pod(pod(f"on-{node}", {}, node=node))
            assert cluster.verdict(f"on-{node}") == "Admitted"
        agent = agent_of(cluster, "snc")

        def refused_elsewhere() -> bool:
            try:
                agent.merge(f"{pods}/on-eight", annotated)
            except ApiError as error:
                return "an agent may only annotate the pods of its own node" in f"{error}"
            return False

        cluster.programs.until("the policy on pods is in force", refused_elsewhere)
        agent.merge(f"{pods}/on-snc", annotated)
        labelled = {"metadata": {"labels": {"team": "another"}}}
        assert "only change the annotations" in refusal(lambda: agent.merge(f"{pods}/on-snc", labelled))
    finally:
        for node in nodes:
            cluster.delete_pod(f"on-{node}")
            cluster.until_gone(f"on-{node}")
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl("delete", kind, "plumbline-agent-pods")
        kubectl("apply", "-k", str(installed.overlay))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/secrets",
        "/api/v1/namespaces/kube-system/secrets",
        f"/api/v1/namespaces/{AGENT_NAMESPACE}/secrets",
        "/api/v1/configmaps",
        "/api/v1/pods",
        "/api/v1/nodes/snc/proxy/pods",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/snc",
        CRDS,
    ],
)
def test_an_agent_does_not_read(cluster: Cluster, installed: Installation, path: str) -> None:
    assert "cannot" in refusal(lambda: agent_of(cluster, "snc").get(path))


def test_administrators_and_the_garbage_collector_are_not_hindered(
    cluster: Cluster, installed: Installation
) -> None:
    node = cluster.api.create("/api/v1/nodes", {"metadata": {"name": "leaving"}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": "leaving", "uid": node["metadata"]["uid"]}
    for path, item in ((PLACEMENTS, named("leaving")), (NRTS, topology("leaving"))):
        item["metadata"]["ownerReferences"] = [owner]
        cluster.api.create(path, item)
    cluster.api.merge(f"{PLACEMENTS}/leaving", {"metadata": {"labels": {"seen": "yes"}}})
    cluster.api.delete("/api/v1/nodes/leaving")
    # The collector learns of new kinds of objects every half a minute.
    for path in (PLACEMENTS, NRTS):
        cluster.programs.until(
            f"{path}/leaving is collected", lambda: not cluster.api.exists(f"{path}/leaving"), limit_s=90
        )
    cluster.api.create(PLACEMENTS, named("of-an-administrator"))
    cluster.api.delete(f"{PLACEMENTS}/of-an-administrator")
