"""Recorded requests and replies of the scheduler, the API server and the kubelet still say what these
components say: each is played again and compared, but for what differs by nature (times, uids, versions)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.api import Api, ApiError, Object
from harness.cluster import Cluster, pod
from harness.extender import Call, Extender, Reply

KUBE = Path(__file__).parents[4] / "shared/kube"
SAMPLES = KUBE / "samples"

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"{SAMPLES} is not there")


def sample(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text())


# The extender's protocol


def scripted(verb: str, body: Any) -> Reply:
    """Answers by the pod's annotation, as whoever answered when the samples were taken."""
    if verb == "prioritize":
        return 200, [{"Host": name, "Score": 1} for name in body["NodeNames"]]
    if verb == "preempt":
        return 200, {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
    if verb == "bind":
        return 200, {"Error": "numa: reservation conflict"}
    names = body["NodeNames"]
    mode = body["Pod"]["metadata"].get("annotations", {}).get("ext-mode", "ok")
    answer: Object = {"NodeNames": [], "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}
    if mode == "ok":
        answer["NodeNames"] = names
    elif mode == "failed":
        answer["FailedNodes"] = {name: "numa: no zone fits 4 cpus" for name in names}
    elif mode == "unresolvable":
        answer["FailedAndUnresolvableNodes"] = {name: "numa: node never fits this pod" for name in names}
    elif mode == "mixed":
        answer["FailedNodes"] = {name: f"numa: no zone fits {i} cpus" for i, name in enumerate(names[:2])}
        answer["FailedAndUnresolvableNodes"] = {name: "numa: stale topology" for name in names[2:]}
    elif mode == "error":
        return 200, {"NodeNames": None, "Error": "numa: topology cache not synced"}
    else:
        return 500, {"x": 1}
    return 200, answer


@pytest.fixture(scope="module")
def extender(cluster: Cluster) -> Iterator[Extender]:
    """The stock scheduler asks it as long as these scenarios run."""
    started = Extender(scripted)
    cluster.control_plane.stop_scheduler()
    cluster.control_plane.start_scheduler(started.configuration)
    yield started
    cluster.control_plane.stop_scheduler()
    cluster.control_plane.start_scheduler()
    started.stop()


def scheduled(cluster: Cluster, name: str, mode: str | None, spec: Object) -> None:
    """Creates a pod like that of the sample."""
    annotations = {"ext-mode": mode} if mode else {}
    cluster.create_pod({"metadata": {"name": name, "annotations": annotations}, "spec": spec})


def call_about(cluster: Cluster, extender: Extender, verb: str, name: str) -> Call:
    return cluster.programs.until(f"{verb} is asked about {name}", lambda: extender.calls(verb, name))[0]


def normal(body: Any) -> Any:
    """Without what is new in each cluster, and without what the ServiceAccount admission plugin adds: it
    was off when the samples were taken."""
    body = json.loads(json.dumps(body))
    if "Pod" in body:
        for field in ("uid", "resourceVersion", "creationTimestamp", "name"):
            body["Pod"]["metadata"].pop(field)
        for field in ("serviceAccountName", "serviceAccount"):
            body["Pod"]["spec"].pop(field, None)
    if body.get("NodeNames"):
        body["NodeNames"] = "some"
    if "NodeNameToMetaVictims" in body:
        victims = [shape(victims) for victims in body["NodeNameToMetaVictims"].values()]
        body["NodeNameToMetaVictims"] = victims[0]
        assert all(other == victims[0] for other in victims)
    return body


def shape(value: Any) -> Any:
    """The names and types of a JSON value; of a list, those of what is in it."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in sorted(value.items())}
    if isinstance(value, list):
        return sorted({json.dumps(shape(part)) for part in value})
    return type(value).__name__


def headers_of(name: str) -> dict[str, str]:
    lines = (SAMPLES / f"extender/{name}.request.headers.txt").read_text().splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines if line)


def without_sizes(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("Host", "Content-Length")}


def spec_of(body: Object) -> Object:
    """What somebody wrote to get the pod of a sample; the API server has filled in the rest again."""
    spec: Object = {**body["Pod"]["spec"]}
    spec.pop("tolerations")
    spec.pop("priority", None)
    return spec


FILTER_SAMPLES = {
    "filter-failed": "failed",
    "filter-unresolvable": "unresolvable",
    "filter-mixed": "mixed",
    "filter-error": "error",
    "filter-http500": "http500",
}


@pytest.mark.parametrize("name", FILTER_SAMPLES)
def test_the_scheduler_asks_to_filter_as_recorded(cluster: Cluster, extender: Extender, name: str) -> None:
    recorded = sample(f"extender/{name}.request.json")
    scheduled(cluster, name, FILTER_SAMPLES[name], spec_of(recorded))
    try:
        call = call_about(cluster, extender, "filter", name)
        assert normal(call.body) == normal(recorded)
        assert sorted(call.body["NodeNames"]) == sorted(cluster.nodes)
        assert without_sizes(call.headers) == without_sizes(headers_of(name))
    finally:
        cluster.delete_pod(name)


@pytest.mark.parametrize(
    "mode, event", [("failed", "pod-failed"), ("unresolvable", "pod-unresolvable"), ("mixed", "pod-mixed"),
                    ("error", "pod-error"), ("http500", "pod-http500")]
)  # fmt: skip
def test_a_pods_condition_says_why_as_recorded(
    cluster: Cluster, extender: Extender, mode: str, event: str
) -> None:
    recorded = sample("extender/events.json")[event]["conditions"][0]
    name = f"why-{mode}"
    scheduled(cluster, name, mode, spec_of(sample(f"extender/filter-{mode}.request.json")))

    def condition() -> Object | None:
        conditions = cluster.pod(name)["status"].get("conditions", [])
        return next((c for c in conditions if c["type"] == "PodScheduled"), None)

    try:
        seen = cluster.programs.until(f"pod {name} has a condition", condition)
        assert (seen["status"], seen["reason"]) == (recorded["status"], recorded["reason"])
        expected = with_nodes(recorded["message"], len(cluster.nodes))
        assert without_port(seen["message"]) == without_port(expected)
    finally:
        cluster.delete_pod(name)


def with_nodes(message: str, count: int) -> str:
    """What the scheduler said of four nodes, of `count` nodes: the first two and the rest differ where
    it counts two and two."""
    message = message.replace("0/4 nodes", f"0/{count} nodes")
    message = re.sub(r"\b4 (?=numa:|No preemption|Preemption is)", f"{count} ", message)
    return re.sub(r"\b2 (?=numa: stale|Preemption is)", f"{count - 2} ", message)


def without_port(message: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", message)


def test_the_scheduler_asks_to_prioritize_and_to_bind_as_recorded(
    cluster: Cluster, extender: Extender
) -> None:
    recorded = sample("extender/prioritize-ok.request.json")
    spec = spec_of(recorded)
    resources = spec["containers"][0]["resources"]
    for amounts in resources.values():
        amounts["nvidia.com/gpu"] = amounts.pop("example.com/gpu")
    spec["containers"][0]["resources"] = resources
    scheduled(cluster, "chosen", None, spec)
    try:
        asked = normal(call_about(cluster, extender, "prioritize", "chosen").body)
        expected = normal(recorded)
        expected["Pod"]["spec"]["containers"][0]["resources"] = resources
        assert asked == expected
        bind = call_about(cluster, extender, "bind", "chosen").body
        assert shape(bind) == shape(sample("extender/bind-ok.request.json"))
        assert bind["Node"] in cluster.nodes
    finally:
        cluster.delete_pod("chosen")


def test_the_scheduler_asks_to_preempt_as_recorded(cluster: Cluster, extender: Extender) -> None:
    recorded = sample("extender/preempt-ok.request.json")
    scheduling = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.api.create(scheduling, {"metadata": {"name": "high"}, "value": 1000})
    fillers = []
    try:
        for node in cluster.nodes.values():
            name = f"filler-{node.name}"
            cpus = len(node.machine.cpus) - 3  # of the shared pool: a Burstable pod
            cluster.create_pod(pod(name, {"cpu": str(cpus)}, node=node.name, limits={}))
            fillers.append(name)
            assert cluster.verdict(name) == "Admitted"
        scheduled(cluster, "high", None, spec_of(recorded))
        asked = call_about(cluster, extender, "preempt", "high").body
        assert normal(asked) == normal(recorded)
        assert set(asked["NodeNameToMetaVictims"]) == set(cluster.nodes)
    finally:
        for name in [*fillers, "high"]:
            if cluster.api.exists(f"/api/v1/namespaces/default/pods/{name}"):
                cluster.delete_pod(name)
        cluster.api.delete(f"{scheduling}/high")


# The API server


NRTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"


@pytest.fixture(scope="module")
def publisher(cluster: Cluster) -> Iterator[Api]:
    """May write NodeResourceTopologies and not delete them; their CRD is there."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    crd = yaml.safe_load((KUBE / "kit/crd-nrt.yaml").read_text())
    cluster.api.create(crds, crd)
    cluster.programs.until("NodeResourceTopologies are served", lambda: cluster.api.exists(NRTS))
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["topology.node.k8s.io"], "resources": ["noderesourcetopologies"],
            "verbs": ["get", "list", "watch", "create", "patch"]}  # fmt: skip
    cluster.api.create(f"{rbac}/clusterroles", {"metadata": {"name": "publisher"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "publisher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "publisher"},
        "subjects": [{"kind": "User", "name": "numa-agent"}],
    }
    cluster.api.create(f"{rbac}/clusterrolebindings", binding)
    yield cluster.control_plane.client("numa-agent", "numa-agent")
    for kind in ("clusterroles", "clusterrolebindings"):
        cluster.api.delete(f"{rbac}/{kind}/publisher")
    cluster.api.delete(f"{crds}/{crd['metadata']['name']}")


def topology(available: str) -> Object:
    recorded = sample("api/ssa.1.json")
    recorded["metadata"] = {"name": recorded["metadata"]["name"]}
    recorded["zones"][0]["resources"][0]["available"] = available
    return dict(recorded)


def refused(ask: Any) -> Object:
    with pytest.raises(ApiError) as error:
        ask()
    return error.value.status


def test_the_api_server_applies_and_watches_as_recorded(cluster: Cluster, publisher: Api) -> None:
    one = f"{NRTS}/node-a"
    first = publisher.apply(one, topology("3"), "numa-agent", force="true")
    second = publisher.apply(one, topology("1"), "numa-agent", force="true")
    same = publisher.apply(one, topology("1"), "numa-agent", force="true")
    recorded = sample("api/ssa.1.json")
    assert shape(second) == shape(recorded)
    assert (
        second["metadata"]["managedFields"][0]["fieldsV1"]
        == recorded["metadata"]["managedFields"][0]["fieldsV1"]
    )
    assert same["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]

    lines = (SAMPLES / "api/watchlist.ndjson").read_text().splitlines()
    events = publisher.watch(
        NRTS, sendInitialEvents="true", allowWatchBookmarks="true", resourceVersionMatch="NotOlderThan",
        timeoutSeconds="1",
    )  # fmt: skip
    seen = list(events)
    # Recorded: a watch that began before there was an object; this one begins after.
    assert [event["type"] for event in seen][:2] == ["ADDED", "BOOKMARK"]
    assert shape(seen[0]) == shape(json.loads(lines[1]))
    assert shape(seen[1]) == shape(json.loads(lines[0]))

    later = publisher.watch(NRTS, resourceVersion=first["metadata"]["resourceVersion"], timeoutSeconds="1")
    assert shape(list(later)[0]) == shape(json.loads(lines[2]))


def test_the_api_server_refuses_as_recorded(cluster: Cluster, publisher: Api) -> None:
    one = f"{NRTS}/node-a"
    publisher.apply(one, topology("3"), "numa-agent", force="true")
    text = (SAMPLES / "api/crd37.txt").read_text()
    recorded = {part["code"]: part for part in map(json.loads, re.findall(r'^\{"code".*', text, re.M))}

    conflict = refused(lambda: publisher.apply(one, topology("2"), "someone-else"))
    assert conflict["message"] == recorded[409]["message"]
    assert conflict["details"]["causes"] == recorded[409]["details"]["causes"]

    without_type = topology("3")
    without_type["zones"] = [{"name": "node-0"}]
    invalid = refused(lambda: publisher.apply(one, without_type, "numa-agent", force="true"))
    assert (invalid["code"], invalid["message"]) == (422, recorded[422]["message"])

    unknown = {**topology("3"), "bogus": 1}
    undeclared = refused(lambda: publisher.apply(one, unknown, "numa-agent", force="true"))
    assert (undeclared["code"], undeclared["message"]) == (500, recorded[500]["message"])

    forbidden = refused(lambda: publisher.delete(one))
    assert forbidden["message"] == recorded[403]["message"]

    unauthorized = refused(lambda: cluster.control_plane.with_token("nobody's").get(one))
    assert unauthorized["message"] == recorded[401]["message"]


# The kubelet


def test_podresources_answers_have_the_recorded_shape(cluster: Cluster) -> None:
    """Amounts and ids are of another machine; which fields there are, and that NUMA node 0 and empty
    lists are left out on the wire, is the same."""
    node = cluster.nodes["two-socket"]
    requests = {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": "2"}
    cluster.create_pod(pod("exclusive", requests, node=node.name))
    cluster.create_pod(pod("shared", {"cpu": "500m", "memory": "1Gi"}, node=node.name))
    try:
        assert cluster.verdict("exclusive") == cluster.verdict("shared") == "Admitted"
        listed = {one["name"]: one for one in node.podresources("list")["podResources"]}
        recorded = {one["name"]: one for one in sample("podresources/fake4-list.json")["podResources"]}
        assert shape(listed["exclusive"]) == shape(recorded["a-fake-node"])
        assert shape(listed["shared"]) == shape(recorded["shared-fake-node"])
        allocatable = node.podresources("allocatable")
        assert shape(allocatable) == shape(sample("podresources/fake4-alloc.json"))
        assert shape(node.podresources("get", "default", "exclusive")) == shape(
            sample("podresources/vm-get.json")
        )
    finally:
        for name in ("exclusive", "shared"):
            cluster.delete_pod(name)
            cluster.until_gone(name)
