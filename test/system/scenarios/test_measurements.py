"""What the agent takes and how fast it is, measured on the build that is shipped, beside real kubelets and a
real API server. The bounds are the project's promises."""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.agent import Agent
from harness.cluster import Cluster, pod
from harness.control_plane import ADDRESS, PORT
from harness.faulty_api import FaultyApi
from harness.installation import Installation
from harness.machine import MACHINES
from harness.node import Node, NodeSpec
from harness.plumbline import release
from harness.state_watch import StateWatch
from harness.usage import cpu_s, cpu_share, memory

SECONDS = float(os.environ["SYSTEM_MEASURE_SECONDS"])  # of doing nothing, for each figure that needs it
CHANGES = int(os.environ["SYSTEM_MEASURE_CHANGES"])
# Less says nothing of what happens once in a while: then figures are shown, and only those are judged that do
# not depend on what else the machine has to do.
THOROUGH = SECONDS >= 120 and CHANGES >= 200
POLL_S = 1.0  # as the DaemonSet sets it
# Further apart than a burst lasts: a second without a question ends it (docs/agent.md).
APART_S = 1.2
STARTED_S = 12  # after which the agent gives back what only its start needed
PODS = 110
CROWDED = NodeSpec("crowded", MACHINES["large"])


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Lines of figures, printed together at the end."""
    lines: list[str] = []
    yield lines
    print("\n".join(["", "measured", *lines]))


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[FaultyApi]:
    """Passes everything on, and notes when."""
    api = FaultyApi(cluster.control_plane.pki, (ADDRESS, PORT), "10.210.0.4")
    api.start()
    yield api
    api.stop()


@contextmanager
def agents_on(
    nodes: list[Node], installed: Installation, api: FaultyApi, blind: bool = False
) -> Iterator[list[Agent]]:
    to = (api.address, api.port)
    agents = [Agent(installed, node, to, programs=release(), blind=blind) for node in nodes]
    for agent in agents:
        agent.start()
    try:
        for agent in agents:
            agent.until_ready()
        yield agents
    finally:
        for agent in agents:
            agent.stop()


def in_ms(seconds: list[float]) -> str:
    p50, p99 = statistics.median(seconds), percentile_99(seconds)
    return f"p50 {p50 * 1e3:6.1f} ms   p99 {p99 * 1e3:6.1f} ms   of {len(seconds)}"


def percentile_99(values: list[float]) -> float:
    return sorted(values)[max(0, round(len(values) * 0.99) - 1)]


# From a change to the API server's reply


@dataclass(frozen=True)
class Write:
    """One that was answered."""

    node: str
    asked_at: float
    answered: float
    server_s: float
    body: bytes


class Changes:
    """Pods that come, one after the other on each of some nodes, and when the agents told of them."""

    def __init__(self, cluster: Cluster, api: FaultyApi, nodes: list[Node]) -> None:
        self._cluster = cluster
        self._api = api
        self._nodes = nodes
        self._states = StateWatch([node.tree / "var/lib/kubelet" for node in nodes])
        self._names = (f"change-{i}" for i in itertools.count())
        self._pods: list[tuple[str, str, str]] = []  # name, node, UID
        self._began = time.time()

    def make(self, count: int) -> None:
        """As many as there is room for at a time."""
        while count:
            here: list[str] = []
            for node in itertools.islice(itertools.cycle(self._nodes), min(count, 5 * len(self._nodes))):
                name = next(self._names)
                made = self._cluster.create_pod(pod(name, {"cpu": "2", "memory": "1Gi"}, node=node.name))
                self._pods.append((name, node.name, made["metadata"]["uid"]))
                here.append(name)
                time.sleep(APART_S / len(self._nodes))  # the rhythm of what is measured
            for name in here:
                assert self._cluster.verdict(name) == "Admitted"
                self._cluster.programs.until(f"{name} is told", lambda: self._reply_with(name), limit_s=20)
                self._cluster.delete_pod(name)
            for name in here:
                self._cluster.until_gone(name)
            count -= len(here)
            time.sleep(2 * POLL_S)  # until the agents have seen the end of them, too

    def to_placement(self) -> list[float]:
        """Seconds from the rename of cpu_manager_state to the reply to the NodePlacement that has the pod."""
        return [reply.answered - self._renamed(uid) for reply, _, uid in self._told()]

    def to_nrt(self) -> list[float]:
        """Seconds to the reply to the NodeResourceTopology that was written before it."""
        return [self._nrt_before(reply).answered - self._renamed(uid) for reply, _, uid in self._told()]

    def to_request(self) -> list[float]:
        """Seconds until the agent began to write: what follows is the API server's and the network's."""
        return [self._nrt_before(reply).asked_at - self._renamed(uid) for reply, _, uid in self._told()]

    def server_took(self) -> list[float]:
        """Seconds that the API server itself had for the agents' writes."""
        return [write.server_s for write in self._writes("nodeplacements/status")]

    def _told(self) -> list[tuple[Write, str, str]]:
        """For each pod the reply to the first NodePlacement that has it, the node, and its UID."""
        told = []
        for name, node, uid in self._pods:
            reply = self._reply_with(name)
            assert reply is not None, f"{name} was never told"
            told.append((reply, node, uid))
        return told

    def _reply_with(self, pod: str) -> Write | None:
        words = f'"name":"{pod}"'.encode()
        return next((one for one in self._writes("nodeplacements/status") if words in one.body), None)

    def _nrt_before(self, reply: Write) -> Write:
        """Both are written one after the other."""
        writes = self._writes("noderesourcetopologies")
        return max(
            (one for one in writes if one.node == reply.node and one.answered <= reply.answered),
            key=lambda one: one.answered,
        )

    def _renamed(self, uid: str) -> float:
        renamed = self._states.renamed(uid)
        assert renamed is not None, f"no entry for {uid} was ever seen"
        return renamed

    def _writes(self, resource: str) -> list[Write]:
        return [
            Write(one.asked.name, one.at, one.answered, one.server_s, one.body)
            for one in self._api.exchanges(since=self._began)
            if (one.asked.verb, one.asked.resource) == ("patch", resource) and one.answered and one.server_s
        ]


@pytest.mark.parametrize("blind", [False, True], ids=["with a hint", "without a hint"])
def test_a_change_is_told_in_time(
    cluster: Cluster, installed: Installation, api: FaultyApi, table: list[str], blind: bool
) -> None:
    nodes = list(cluster.nodes.values())
    bound_s = (POLL_S if blind else 0) + 0.1
    with agents_on(nodes, installed, api, blind):
        changes = Changes(cluster, api, nodes)
        changes.make(CHANGES // 4 if blind else CHANGES)
        to_placement, to_nrt = changes.to_placement(), changes.to_nrt()
        words = "without a hint" if blind else "with a hint"
        table.append(f"change to the agent's request, {words:15}  {in_ms(changes.to_request())}")
        table.append(f"change to reply, NRT, {words:15}           {in_ms(to_nrt)}")
        table.append(f"change to reply, NodePlacement, {words:15} {in_ms(to_placement)}")
        table.append(f"of it, the API server's own PATCH {'':13} {in_ms(changes.server_took())}")
    assert statistics.median(to_placement) < bound_s
    if THOROUGH:
        assert percentile_99(to_placement) < bound_s


def test_the_first_publication_is_there_at_once(
    cluster: Cluster, installed: Installation, api: FaultyApi, table: list[str]
) -> None:
    node, took = cluster.nodes["two-socket"], []
    agent = Agent(installed, node, (api.address, api.port), programs=release())
    for _ in range(10):
        before = time.time()
        agent.start()
        started = time_of_exec(agent)
        agent.until_ready()
        replies = [
            one.answered
            for one in api.exchanges(since=before)
            if one.asked.resource == "nodeplacements/status" and one.answered
        ]
        took.append(replies[0] - started)
        agent.stop()
    table.append(f"start to the first publication {'':16} {in_ms(took)}")
    assert max(took) < 0.5


def time_of_exec(agent: Agent) -> float:
    """When the process became the agent: what comes before makes up its container."""
    while Path(f"/proc/{agent.pid}/comm").read_text() != "plumbline-agent\n":
        time.sleep(0.001)
    return time.time()


# What it takes


@pytest.fixture(scope="module")
def crowded(cluster: Cluster, installed: Installation) -> Iterator[Node]:
    """A node with 110 pods, all but the agent's with CPUs and memory of their own, some with a GPU."""
    cluster.add_nodes([CROWDED])
    installed.until_on_every_node()
    names = [f"crowd-{i}" for i in range(PODS - 1)]
    for i, name in enumerate(names):
        gpu = {"nvidia.com/gpu": "1"} if i < 8 else {}
        cluster.create_pod(pod(name, {"cpu": "2", "memory": "1Gi", **gpu}, node=CROWDED.name))
    for name in names:
        assert cluster.verdict(name, limit_s=120) == "Admitted"
    yield cluster.nodes[CROWDED.name]
    cluster.remove_node(CROWDED.name)


def test_an_idle_agent_takes_little_at_110_pods(
    cluster: Cluster, crowded: Node, installed: Installation, api: FaultyApi, table: list[str]
) -> None:
    with agents_on([crowded], installed, api) as (agent,):
        agent.until_true()
        assert len(agent.placement()["status"]["pods"]) == PODS - 1
        agent.metrics()
        busy = cpu_s(agent.pid)
        table.append(f"CPU from the start to all of it published {'':5} {busy:.3f} s")
        began = time.time()
        share = cpu_share(agent.pid, max(SECONDS, STARTED_S))
        asked = api.counts(since=began)
        agent.metrics()  # a scrape, after which it may have grown
        used = memory(agent.pid)
        table.append(f"CPU of an idle agent over {SECONDS:.0f} s {'':18} {share:.3%} of a core")
        table.append(
            f"resident memory, and anonymous of it {'':10} "
            f"{used.resident_kib / 1024:.1f} MiB, {used.anonymous_kib / 1024:.1f} MiB"
        )
        table.append(f"asked of the API server meanwhile {'':13} {dict(asked)}")
    if THOROUGH:
        assert share < 0.002
    assert used.resident_kib < 20 * 1024
    assert used.anonymous_kib < 8 * 1024


def test_polling_costs_the_kubelet_little_at_110_pods(
    crowded: Node, installed: Installation, api: FaultyApi, table: list[str]
) -> None:
    """An agent that is told of nothing polls each second and never slower. It is stopped and continued in
    turns, so that what the kubelet does for others is the same with and without it."""
    kubelet, turns = crowded.kubelet_pid, 6 if THOROUGH else 2
    shares: dict[bool, list[float]] = {False: [], True: []}
    with agents_on([crowded], installed, api, blind=True) as (agent,):
        for turn in range(turns):
            polled = turn % 2 == 0
            agent.signal(signal.SIGCONT if polled else signal.SIGSTOP)
            shares[polled].append(cpu_share(kubelet, max(10.0, SECONDS / 4)))
        agent.signal(signal.SIGCONT)
    costs = statistics.mean(shares[True]) - statistics.mean(shares[False])
    table.append(
        f"CPU of the kubelet for a poll a second {'':8} {costs:.3%} of a core, "
        f"{statistics.mean(shares[False]):.2%} without"
    )
    if THOROUGH:
        assert costs < 0.005
