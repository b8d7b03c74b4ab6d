"""Agents on all nodes, as the DaemonSet runs them: what they publish, and beside whom."""

from __future__ import annotations

import copy
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
import yaml

from harness import truth
from harness.agent import Agent
from harness.api import ApiError, Object
from harness.cluster import Cluster, pod
from harness.control_plane import ADDRESS, PORT
from harness.faulty_api import FaultyApi
from harness.installation import LEASES, MANAGER, NRTS, PLACEMENTS, Installation
from harness.manifests import MANIFESTS, Kubectl
from harness.node import Node
from harness.random_pods import RandomPods

SECONDS = float(os.environ["SYSTEM_RANDOM_SECONDS"])  # of random pods, on all nodes at once
SEED = int(os.environ["SYSTEM_SEED"])
IDLE_S = 65  # longer than a Lease lasts twice, and than a bookmark of a watch
GPU = "nvidia.com/gpu"
PINNED = {"cpu": "2", "memory": "1Gi", GPU: "1"}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[FaultyApi]:
    """Through which the agents speak to the API server."""
    api = FaultyApi(cluster.control_plane.pki, (ADDRESS, PORT), "10.210.0.2")
    api.start()
    yield api
    api.stop()


@pytest.fixture(scope="module")
def agents(cluster: Cluster, installed: Installation, api: FaultyApi) -> Iterator[dict[str, Agent]]:
    agents = {name: Agent(installed, node, (api.address, api.port)) for name, node in cluster.nodes.items()}
    for agent in agents.values():
        agent.start()
    for agent in agents.values():
        agent.until_ready()
    yield agents
    for agent in agents.values():
        agent.stop()


@contextmanager
def instead(agents: dict[str, Agent], agent: Agent) -> Iterator[Agent]:
    """An agent that is set otherwise, in the place of its node's."""
    usual = agents[agent.node.name]
    usual.stop()
    agent.start()
    try:
        agent.until_ready()
        yield agent
    finally:
        agent.stop()
        usual.start()
        usual.until_ready()


@contextmanager
def holding(cluster: Cluster, name: str, node: str, requests: dict[str, str]) -> Iterator[Object]:
    """A pod that is there for a while."""
    made = cluster.create_pod(pod(name, requests, node=node))
    assert cluster.verdict(name) == "Admitted"
    try:
        yield made
    finally:
        cluster.delete_pod(name)
        cluster.until_gone(name)
        cluster.until_cleaned_up(cluster.nodes[node])


# What is published


def test_what_is_published_is_what_the_kubelets_say_while_random_pods_come_and_go(
    cluster: Cluster, agents: dict[str, Agent]
) -> None:
    def live(agent: Agent) -> list[float]:
        pods = RandomPods(cluster, agent.node, SEED)
        end = time.monotonic() + SECONDS
        took = []
        while time.monotonic() < end or pods.should_go_on():
            pods.step()
            cluster.until_cleaned_up(agent.node)
            took.append(agent.until_true())
        pods.delete_all()
        cluster.until_cleaned_up(agent.node)
        took.append(agent.until_true())
        assert pods.verdicts["Admitted"] > 0
        return took

    with ThreadPoolExecutor(len(agents)) as pool:
        for name, took in zip(agents, pool.map(live, agents.values())):
            print(
                f"{name}: true at {len(took)} quiet points, after {statistics.median(took):.2f} s in the "
                f"median and {max(took):.2f} s at most, the looking included"
            )


def test_kubectl_shows_both_objects(cluster: Cluster, kubectl: Kubectl, agents: dict[str, Agent]) -> None:
    with holding(cluster, "shown", "two-socket", PINNED):
        agents["two-socket"].until_true()
        shown = {kind: kubectl("get", kind) for kind in ("nodeplacements", "noderesourcetopologies")}
    for kind, table in shown.items():
        print(f"$ kubectl get {kind}\n{table}")
        header, *rows = table.splitlines()
        assert {"NAME", "POLICY", "SCOPE", "FREE", "AGE"} <= set(header.split())
        of = {row.split()[0]: row.split() for row in rows}
        assert set(of) == set(agents)
        assert of["two-socket"][1:3] == ["single-numa-node", "pod"]
    row = next(row for row in shown["nodeplacements"].splitlines() if row.startswith("two-socket"))
    assert row.split()[3:7] == ["1", "1", "0", "0"]  # pods, aligned, misaligned, drifted


def test_the_objects_belong_to_the_node(cluster: Cluster, agents: dict[str, Agent]) -> None:
    for name, agent in agents.items():
        uid = cluster.api.get(f"/api/v1/nodes/{name}")["metadata"]["uid"]
        for item in (agent.nrt(), agent.placement()):
            (owner,) = item["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", name, uid)


def test_an_agent_that_starts_anew_goes_on_with_the_revision(
    cluster: Cluster, agents: dict[str, Agent]
) -> None:
    agent = agents["two-socket"]
    before = agent.placement()["status"]
    agent.stop()
    with holding(cluster, "meanwhile", "two-socket", PINNED):
        agent.start()
        agent.until_ready()
        agent.until_true()
        after = agent.placement()["status"]
    assert after["revision"] > before["revision"]


def test_while_nothing_happens_nothing_is_asked_but_the_lease(
    cluster: Cluster, agents: dict[str, Agent], api: FaultyApi
) -> None:
    for agent in agents.values():
        agent.until_true()
    began = time.time()
    revisions = {name: agent.placement()["status"]["revision"] for name, agent in agents.items()}
    time.sleep(IDLE_S)  # it is what happens in this time that is asked for
    counts = api.counts(since=began)
    print(f"{len(agents)} agents in {IDLE_S} s: {dict(counts)}")
    assert {what for what in counts if not what.startswith("watch ")} == {"patch leases"}
    # One each 30 s, give or take.
    assert len(agents) <= counts["patch leases"] <= 4 * len(agents)
    for name, agent in agents.items():
        assert agent.placement()["status"]["revision"] == revisions[name]


def test_the_lease_says_that_the_agent_lives(cluster: Cluster, agents: dict[str, Agent]) -> None:
    for name, agent in agents.items():
        spec = agent.lease()["spec"]
        assert spec["leaseDurationSeconds"] == 90
        assert spec["renewTime"] and spec["holderIdentity"]
    first = agents["snc"].lease()["spec"]["renewTime"]
    cluster.programs.until(
        "the Lease is renewed", lambda: bool(agents["snc"].lease()["spec"]["renewTime"] != first), limit_s=60
    )


def events_on(cluster: Cluster, name: str) -> list[Object]:
    selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
    events = cluster.api.items("/api/v1/namespaces/default/events", fieldSelector=selector)
    return [event for event in events if event["source"].get("component", "") == MANAGER]


def is_torn(node: Node, name: str) -> bool:
    """Whether what the kubelet gave it is on more than one NUMA node."""
    return len(truth.numa_nodes_of(node.machine, truth.listed(node)[f"default/{name}"].values())) > 1


def test_a_misaligned_pod_is_told_so_once(cluster: Cluster, agents: dict[str, Agent]) -> None:
    """On a node that aligns nothing: two pods get CPUs of the first NUMA node, and a GPU of each. Which has
    which is the kubelet's whim."""
    agent, wanted = agents["no-smt"], {"cpu": "1", "memory": "1Gi", GPU: "1"}
    with ExitStack() as pods:
        one, other = (
            pods.enter_context(holding(cluster, name, "no-smt", wanted)) for name in ("one", "other")
        )
        torn, whole = (one, other) if is_torn(agent.node, "one") else (other, one)
        name, whole_name = torn["metadata"]["name"], whole["metadata"]["name"]
        assert is_torn(agent.node, name) and not is_torn(agent.node, whole_name)
        cluster.programs.until("the pod is told", lambda: events_on(cluster, name))
        agent.until_true()
        agent.stop()
        agent.start()
        agent.until_ready()
        with holding(cluster, "third", "no-smt", {"cpu": "1", "memory": "1Gi"}):
            agent.until_true()
        (event,) = events_on(cluster, name)
        assert events_on(cluster, whole_name) == [] and events_on(cluster, "third") == []
    assert (event["type"], event["reason"]) == ("Warning", "MoreNUMANodesThanNeeded")
    assert event["involvedObject"]["uid"] == torn["metadata"]["uid"]
    assert event["message"]


# Others who write


def foreign(name: str, **more: object) -> Object:
    """As another exporter writes it."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, **more},
        "attributes": [{"name": "topologyManagerPolicy", "value": "foreign"}],
        "zones": [{"name": "node-0", "type": "Node"}],
    }


def test_an_object_that_somebody_else_writes_is_left_to_him_and_taken_up_when_he_is_gone(
    cluster: Cluster, agents: dict[str, Agent]
) -> None:
    agent = agents["snc"]
    cluster.api.apply(f"{NRTS}/snc", foreign("snc"), "some-exporter", force="true")
    try:
        said = agent.until_condition("NRTPublished", "False", "OtherWriter")
        assert "some-exporter" in said
        with holding(cluster, "unseen", "snc", {"cpu": "1", "memory": "1Gi"}):
            agent.until_true(nrt=False)
            assert agent.nrt()["zones"] == foreign("snc")["zones"]
    finally:
        cluster.api.delete(f"{NRTS}/snc")
    agent.until_true()
    agent.until_no_condition("NRTPublished", "False")


def test_an_object_is_taken_over_with_all_that_the_other_left(
    cluster: Cluster, agents: dict[str, Agent], installed: Installation, api: FaultyApi
) -> None:
    node = cluster.nodes["misled"]
    namespace = cluster.api.get("/api/v1/namespaces/default")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": namespace["uid"]}
    left = foreign("misled", annotations={"some-exporter": "was here"}, ownerReferences=[owner])
    cluster.api.delete(f"{NRTS}/misled")
    cluster.api.apply(f"{NRTS}/misled", left, "some-exporter", force="true")
    with instead(agents, Agent(installed, node, (api.address, api.port), "--nrt=always")) as agent:
        agent.until_true()
        nrt = agent.nrt()
    assert "some-exporter" not in nrt["metadata"].get("annotations", {})
    assert [one["kind"] for one in nrt["metadata"]["ownerReferences"]] == ["Node"]
    assert {one["manager"] for one in nrt["metadata"]["managedFields"]} == {MANAGER}


def test_an_object_is_not_touched_where_none_is_wanted(
    cluster: Cluster, agents: dict[str, Agent], installed: Installation, api: FaultyApi
) -> None:
    node = cluster.nodes["pod-level"]
    with instead(agents, Agent(installed, node, (api.address, api.port), "--nrt=never")) as agent:
        cluster.api.delete(f"{NRTS}/pod-level")
        with holding(cluster, "unseen", "pod-level", {"cpu": "1", "memory": "1Gi"}):
            agent.until_true(nrt=False)
        assert not cluster.api.exists(f"{NRTS}/pod-level")
    agents["pod-level"].until_true()


@pytest.mark.parametrize("resource", [NRTS, PLACEMENTS])
def test_an_object_that_somebody_deletes_is_written_again(
    cluster: Cluster, agents: dict[str, Agent], resource: str
) -> None:
    cluster.api.delete(f"{resource}/eight")
    agents["eight"].until_true()


# The node that it belongs to


def test_a_node_under_the_same_name_is_another_owner(cluster: Cluster, agents: dict[str, Agent]) -> None:
    agent = agents["misled"]
    with recreated(cluster, agent.node) as uid:

        def belongs() -> bool:
            owners = [one["metadata"]["ownerReferences"] for one in (agent.nrt(), agent.placement())]
            return [[owner["uid"] for owner in list] for list in owners] == [[uid], [uid]]

        cluster.programs.until("both objects belong to the new node", belongs, limit_s=90)
        # The garbage collector has seen that the old owner is gone, and takes nothing of the new one's.
        time.sleep(5)
        assert belongs()
        agent.until_true()


@contextmanager
def recreated(cluster: Cluster, node: Node) -> Iterator[str]:
    """The Node object is deleted and made again at once, so that no pod is lost. Its uid is another."""
    path = f"/api/v1/nodes/{node.name}"
    old = cluster.api.get(path)
    cluster.api.delete(path)
    kept = {key: old["metadata"][key] for key in ("name", "labels", "annotations")}
    new = cluster.api.create("/api/v1/nodes", {"metadata": kept, "spec": old["spec"]})
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    cluster.until_ready(node)
    yield new["metadata"]["uid"]


# Their definitions


def definition(name: str) -> Object:
    crd: Object = yaml.safe_load((MANIFESTS / name).read_text())
    return crd


NRT_CRD = "components/nrt-crd/crd-noderesourcetopologies.yaml"
PLACEMENT_CRD = "base/crd-nodeplacements.yaml"


@pytest.mark.parametrize("file, resource", [(NRT_CRD, NRTS), (PLACEMENT_CRD, PLACEMENTS)])
def test_a_definition_may_go_and_come_back(
    cluster: Cluster, kubectl: Kubectl, agents: dict[str, Agent], file: str, resource: str
) -> None:
    kubectl("delete", "crd", definition(file)["metadata"]["name"])
    try:
        if resource == NRTS:
            agents["two-socket"].until_condition("NRTPublished", "False", "NotServed")
        for agent in agents.values():
            assert agent.is_alive()
    finally:
        kubectl("apply", "-f", str(MANIFESTS / file))
        cluster.programs.until(f"{resource} is served", lambda: cluster.api.exists(resource))
    for agent in agents.values():
        agent.until_true(limit_s=90)
        agent.until_no_condition("NRTPublished", "False")


def test_what_an_older_definition_does_not_know_is_left_out_and_named(
    cluster: Cluster, kubectl: Kubectl, agents: dict[str, Agent]
) -> None:
    older = copy.deepcopy(definition(PLACEMENT_CRD))
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    status = schema["properties"]["status"]["properties"]
    del status["bootID"]
    del status["numaNodes"]["items"]["properties"]["coreGroups"]
    kubectl("apply", "-f", "-", document=yaml.safe_dump(older))
    agent = agents["snc"]
    try:
        cluster.programs.until("the older schema is in force", lambda: refuses_boot_id(cluster))
        with holding(cluster, "change", "snc", {"cpu": "1", "memory": "1Gi"}):
            said = agent.until_condition("CRDTooOld", "True", "FieldsLeftOut")
            assert "bootID" in said and "coreGroups" in said
            agent.until_true()
            assert "bootID" not in agent.placement()["status"]
    finally:
        kubectl("apply", "-f", str(MANIFESTS / PLACEMENT_CRD))
        cluster.programs.until("the schema is in force", lambda: not refuses_boot_id(cluster))
    agent.stop()
    agent.start()
    agent.until_ready()
    agent.until_no_condition("CRDTooOld", "True")
    assert agent.placement()["status"]["bootID"]


def refuses_boot_id(cluster: Cluster) -> bool:
    placement = {
        "apiVersion": "plumbline.dev/v1alpha1",
        "kind": "NodePlacement",
        "metadata": {"name": "eight"},
        "status": {"bootID": "x"},
    }
    try:
        cluster.api.apply(
            f"{PLACEMENTS}/eight/status", placement, "schema-reader", force="true", dryRun="All"
        )
    except ApiError as error:
        return "field not declared in schema" in f"{error}"
    return False


# Who does not answer


def test_an_api_server_that_is_away_is_waited_for(
    cluster: Cluster, agents: dict[str, Agent], api: FaultyApi
) -> None:
    agent = agents["two-socket"]
    failures = agent.metrics().sum("plumbline_publish_failures_total")
    api.go_down()
    try:
        with holding(cluster, "missed", "two-socket", PINNED):
            cluster.programs.until(
                "the agent counts its failures",
                lambda: agent.metrics().sum("plumbline_publish_failures_total") > failures,
            )
            assert agent.is_alive()
            api.come_up()
            print(f"true again {agent.until_true(limit_s=90):.2f} s after the API server came back")
    finally:
        api.come_up()  # also where it went wrong
    for other in agents.values():
        other.until_true(limit_s=90)


def test_a_kubelet_that_is_away_changes_nothing_but_a_condition(
    cluster: Cluster, agents: dict[str, Agent]
) -> None:
    agent, node = agents["two-socket"], cluster.nodes["two-socket"]
    with holding(cluster, "steady", "two-socket", PINNED):
        agent.until_true()
        before = agent.placement()
        node.stop_kubelet()
        try:
            agent.until_condition("PodResourcesReachable", "False", "NotAnswering")
            away = agent.placement()
        finally:
            node.start_kubelet()
            began = time.monotonic()
            cluster.until_ready(node)
        assert truth.published(away) == truth.published(before)
        assert away["status"]["observedAt"] == before["status"]["observedAt"]
        agent.until_condition("PodResourcesReachable", "True", "Answered")
        agent.until_true()
        print(f"true again {time.monotonic() - began:.2f} s after the kubelet's sockets were back")


def test_a_token_for_one_node_is_of_no_use_for_another(
    cluster: Cluster, agents: dict[str, Agent], api: FaultyApi
) -> None:
    """The one that the agent itself uses, as the proxy saw it."""
    token = next(one.token for one in reversed(api.exchanges()) if one.asked.name == "snc")
    stolen = cluster.control_plane.with_token(token)
    for path, item in (
        (f"{PLACEMENTS}/eight/status", agents["eight"].placement()),
        (f"{NRTS}/eight", agents["eight"].nrt()),
        (f"{LEASES}/eight", agents["eight"].lease()),
    ):
        del item["metadata"]["managedFields"]
        with pytest.raises(ApiError, match="may not write objects of eight") as refused:
            stolen.apply(path, item, MANAGER, force="true")
        assert refused.value.code == 403
    with pytest.raises(ApiError, match="cannot list resource .secrets."):
        stolen.items("/api/v1/secrets")
