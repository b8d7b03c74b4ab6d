"""Agents in a storm: everything that goes wrong in the field, one thing after the other, then two at once.
At no time is a node published as emptier than it is, and when it is over all is true again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import truth
from harness.agent import Agent, Metrics
from harness.api import Object
from harness.cluster import Cluster, pod
from harness.control_plane import ADDRESS, PORT
from harness.faulty_api import FaultyApi
from harness.installation import NRTS, PLACEMENTS, Installation
from harness.machine import MACHINES
from harness.node import NodeSpec
from harness.pki import Pki
from harness.plumbline import release
from harness.process import Failed
from harness.random_pods import RandomPods
from harness.recorder import Recorder, Version
from harness.storm import OF_THE_API_SERVER, OF_THE_NODE, Storm, Trouble
from harness.usage import Memory, memory

SECONDS = float(os.environ["SYSTEM_CHAOS_SECONDS"])
SEED = int(os.environ["SYSTEM_SEED"])
OVER_S = 90  # a write that failed is tried again within 45 s, a lost connection is found within 60 s
SHOWS_S = 45  # a request that hangs is given up after 10 s, a publication after 15
GROWTH_KIB = 1024
LEAST_PAIRS = 5
CROWD = 5  # pods; with more of them there may be no room for another
TOLD = {"cpu": "2", "memory": "1Gi"}
STEADY = {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)

# The first agent is the one that is shipped, by a clock that can be set; it lives through all of it. The second
# looks for errors of its memory, and is killed now and then.
MEASURED, SANITIZED = (
    NodeSpec(name, MACHINES["two-socket"], cpu_options={"full-pcpus-only": "true"}, disk_mib=64)
    for name in ("stormy", "stormy-too")
)


@pytest.fixture(scope="module")
def storm(
    cluster: Cluster, installed: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Storm]:
    cluster.add_nodes([MEASURED, SANITIZED])
    installed.until_on_every_node()
    folder = tmp_path_factory.mktemp("storm")
    clock = folder / "clock/faketime"
    clock.parent.mkdir()
    clock.write_text("+0")
    api = FaultyApi(cluster.control_plane.pki, (ADDRESS, PORT), "10.210.0.3")
    api.start()
    to = (api.address, api.port)
    assert FAKETIME is not None, "no libfaketime"
    set_clock = [
        f"LD_PRELOAD={FAKETIME}",
        "FAKETIME_TIMESTAMP_FILE=/run/clock/faketime",
        "FAKETIME_NO_CACHE=1",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "NO_FAKE_STAT=1",  # times of files stay when a clock is set
    ]
    agents = [
        Agent(
            installed,
            cluster.nodes[MEASURED.name],
            to,
            programs=release(),
            environment=set_clock,
            mounts=[f"{clock.parent}:/run/clock"],
        ),
        Agent(installed, cluster.nodes[SANITIZED.name], to),
    ]
    for agent in agents:
        agent.start()
        agent.until_ready()
    yield Storm(cluster, api, agents, Pki(folder / "foreign"), clock)
    for agent in agents:
        agent.stop()
        cluster.remove_node(agent.node.name)
    api.stop()


class Weather:
    """Lets things go wrong, and pods come and go meanwhile."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm
        self.random = random.Random(SEED)
        self.pods = [RandomPods(storm.cluster, agent.node, SEED) for agent in storm.agents]
        self.unseen: list[str] = []  # troubles that the agent did not show
        self._until = storm.cluster.programs.until

    @property
    def measured(self) -> Agent:
        return self.storm.agents[0]

    def one(self, trouble: Trouble) -> None:
        """Until it shows in the agent's metrics."""
        before, began = self.measured.metrics(), time.monotonic()
        self._on_each_node(lambda pods: pods.delete_all() if len(pods.alive) > CROWD else None)
        with trouble.around(self.storm), self._something_to_tell():
            self._change_pods(trouble)
            if trouble.shows:
                self._note_whether_it_shows(trouble, before)
        self._on_each_node(RandomPods.finish)
        for agent in self.storm.agents:
            self.storm.cluster.until_gone(f"told-{agent.node.name}")
            self.storm.cluster.until_cleaned_up(agent.node)
        print(f"{trouble.name}: {time.monotonic() - began:.1f} s")

    @contextmanager
    def _something_to_tell(self) -> Iterator[None]:
        """A pod on each node that gets CPUs, whatever the random ones do."""
        for agent in self.storm.agents:
            self.storm.cluster.create_pod(pod(f"told-{agent.node.name}", TOLD, node=agent.node.name))
        yield
        for agent in self.storm.agents:
            self.storm.cluster.delete_pod(f"told-{agent.node.name}")

    def _note_whether_it_shows(self, trouble: Trouble, before: Metrics) -> None:
        shows = trouble.shows or (lambda before, now: True)
        try:
            self._until(
                f"{trouble.name} shows", lambda: shows(before, self.measured.metrics()), limit_s=SHOWS_S
            )
        except Failed:
            self.storm.cluster.programs.check()
            self.unseen.append(trouble.name)

    def two(self) -> None:
        """One of each kind at once; while it is so the agent that is not measured may have to start anew."""
        outside, inside = self.random.choice(OF_THE_API_SERVER), self.random.choice(OF_THE_NODE)
        with outside.around(self.storm), inside.around(self.storm):
            if self.random.random() < 0.3:
                for agent in self.storm.agents[1:]:
                    agent.stop(signal.SIGKILL)
                    agent.start()
            self._change_pods(inside)
            time.sleep(self.random.uniform(0, 3))  # the storm's duration; nothing is waited for
        self._on_each_node(RandomPods.finish)

    def calm(self) -> Memory:
        """All is over, and what is published is true. Returns what the measured agent then takes."""
        for agent in self.storm.agents:
            # A kubelet whose disk was full writes its files when it next gives something out.
            name = f"calm-{agent.node.name}"
            self.storm.cluster.create_pod(pod(name, STEADY, node=agent.node.name))
            self.storm.cluster.verdict(name)
            self.storm.cluster.delete_pod(name)
            self.storm.cluster.until_gone(name)
            self.storm.cluster.until_cleaned_up(agent.node)
            print(f"{agent.name}: true {agent.until_true(limit_s=OVER_S):.2f} s after the storm")
        return memory(self.measured.pid)

    def _change_pods(self, trouble: Trouble) -> None:
        self._on_each_node(RandomPods.begin)
        if trouble.kubelet_answers:
            self._on_each_node(RandomPods.finish)

    def _on_each_node(self, do: Callable[[RandomPods], None]) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(do, self.pods))


def test_a_storm_leaves_nothing_untrue_empty_or_grown(cluster: Cluster, storm: Storm) -> None:
    for agent in storm.agents:
        cluster.create_pod(pod(steady(agent), STEADY, node=agent.node.name))
        assert cluster.verdict(steady(agent)) == "Admitted"
        agent.until_true()
    recorder = Recorder(cluster, PLACEMENTS, NRTS)
    weather = Weather(storm)
    began = time.monotonic()
    kinds = [*OF_THE_API_SERVER, *OF_THE_NODE]
    weather.random.shuffle(kinds)
    # Last those after which the kubelet is not believed for a while: nothing new is published then.
    kinds.sort(key=lambda trouble: trouble.kubelet_starts)
    for trouble in kinds:
        weather.one(trouble)
    warm = weather.calm()
    pairs = 0
    while pairs < LEAST_PAIRS or time.monotonic() < began + SECONDS:
        weather.two()
        pairs += 1
    after = weather.calm()
    print(f"{len(kinds)} troubles and {pairs} pairs in {time.monotonic() - began:.0f} s")
    print(f"faults met: {dict(storm.api.faults_met())}; verdicts: {weather.pods[0].verdicts}")
    print(f"memory: {warm} after one of each kind, {after} at the end")

    recorder.stop()
    for agent in storm.agents:
        name = agent.node.name
        assert lost_from_nrt(recorder.versions(NRTS, name)) == []
        assert lost_from_placement(recorder.versions(PLACEMENTS, name), steady(agent)) == []
    assert weather.unseen == []
    assert after.anonymous_kib <= warm.anonymous_kib + GROWTH_KIB


def steady(agent: Agent) -> str:
    """The pod that is there all the time."""
    return f"steady-{agent.node.name}"


def lost_from_nrt(versions: list[Version]) -> list[str]:
    """What a version lacks of what the machine has."""
    assert versions, "nothing was recorded"
    whole = resources(versions[0].object)
    return [
        f"{version.kind} at {version.at}: {resources(version.object)}"
        for version in versions
        if version.kind == "DELETED" or resources(version.object) != whole
    ]


def resources(nrt: Object) -> dict[str, dict[str, str]]:
    """Capacity by zone and resource."""
    return {
        zone["name"]: {one["name"]: one["capacity"] for one in zone["resources"]} for zone in nrt["zones"]
    }


def lost_from_placement(versions: list[Version], name: str) -> list[str]:
    """Versions without data, or without what the pod held in the first of them."""
    assert versions, "nothing was recorded"
    whole = held_by(versions[0].object, name)
    assert whole
    return [
        f"{version.kind} at {version.at}, revision {version.object['status'].get('revision')}: "
        f"{held_by(version.object, name)}"
        for version in versions
        if version.kind == "DELETED"
        or "observedAt" not in version.object["status"]
        or len(version.object["status"]["devices"]) != len(versions[0].object["status"]["devices"])
        or held_by(version.object, name) != whole
    ]


def held_by(placement: Object, name: str) -> truth.Facts:
    return truth.Facts(truth.holdings(placement).get(f"default/{name}", {}))
