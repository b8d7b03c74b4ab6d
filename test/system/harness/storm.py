"""What goes wrong around an agent: in front of the API server, below the kubelet, with the clock. Each trouble
is a context: it is there while one is inside, and over afterwards."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import faulty_api
from .agent import Agent, Metrics
from .cluster import Cluster
from .faulty_api import Applies, Fault, FaultyApi
from .pki import Pki

# More than fs.inotify.max_queued_events, so that the kernel drops some and says so.
QUEUED_EVENTS = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


@dataclass
class Storm:
    """Over the nodes of some agents, who all ask the API server through one proxy."""

    cluster: Cluster
    api: FaultyApi
    agents: list[Agent]
    foreign: Pki  # an authority that nobody trusts
    clock: Path  # that the agents' clocks go by, where they do (faketime)


Around = Callable[[Storm], AbstractContextManager[None]]
# Whether it is to be seen in the metrics now, by those of before.
Shows = Callable[[Metrics, Metrics], bool]


@dataclass(frozen=True)
class Trouble:
    name: str
    around: Around
    shows: Shows | None = None  # None: it is none for who takes it right
    kubelet_answers: bool = True  # pods that come and go do so meanwhile, and not only afterwards
    kubelet_starts: bool = False  # it ends with a kubelet that has just started


def grows(metric: str, **labels: str) -> Shows:
    return lambda before, now: now.sum(metric, **labels) > before.sum(metric, **labels)


publishing_fails = grows("plumbline_publish_failures_total")
kubelet_is_silent = grows("plumbline_podresources_errors_total")
watches_are_expired = grows("plumbline_watches_lost_total", cause="expired")
watches_are_cut = grows("plumbline_watches_lost_total", cause="cut")
hints_are_lost = grows("plumbline_hints_lost_total")


def has_condition(type: str, reason: str) -> Shows:
    return lambda before, now: now.sum("plumbline_condition", type=type, reason=reason) == 1


state_is_old = has_condition("StateKnown", "FilesOld")


# In front of the API server


def met_with(fault: Fault, applies: Applies = faulty_api.writes) -> Around:
    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        storm.api.put(fault, applies)
        try:
            yield
        finally:
            storm.api.heal()

    return around


def once(action: Callable[[FaultyApi], object]) -> Around:
    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        action(storm.api)
        yield

    return around


def to_streams(action: Callable[[FaultyApi], int]) -> Around:
    """Done once there is one: after other troubles a client may be slow to watch again."""

    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        storm.cluster.programs.until("a watch is open", lambda: action(storm.api) > 0, limit_s=60)
        yield

    return around


def watches_met_with(fault: Fault) -> Around:
    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        with met_with(fault, faulty_api.watches)(storm):
            storm.api.cut_streams()  # those that are there; whoever has none is about to ask
            yield

    return around


@contextmanager
def api_server_down(storm: Storm) -> Iterator[None]:
    storm.api.go_down()
    try:
        yield
    finally:
        storm.api.come_up()


@contextmanager
def foreign_certificate(storm: Storm) -> Iterator[None]:
    """As somebody shows it who stepped in between."""
    storm.api.rotate_certificate(storm.foreign)
    storm.api.go_down()
    storm.api.come_up()
    try:
        yield
    finally:
        storm.api.rotate_certificate()


@contextmanager
def tokens_refused(storm: Storm) -> Iterator[None]:
    """They end before new ones are there."""
    for agent in storm.agents:
        storm.api.refuse_token(agent.token)
    try:
        yield
    finally:
        for agent in storm.agents:
            agent.renew_token()


@contextmanager
def tokens_renewed(storm: Storm) -> Iterator[None]:
    """In time, and the old ones end then."""
    for agent in storm.agents:
        storm.api.refuse_token(agent.renew_token())
    yield


def rotated_certificate(api: FaultyApi) -> None:
    api.rotate_certificate()
    api.close_idle()


# On the node


def kubelet_away(how: signal.Signals) -> Around:
    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        nodes = [agent.node for agent in storm.agents]
        for node in nodes:
            node.stop_kubelet(how)
        try:
            yield
        finally:
            for node in nodes:
                node.start_kubelet()
            for node in nodes:
                storm.cluster.until_ready(node)

    return around


@contextmanager
def full_disk(storm: Storm) -> Iterator[None]:
    nodes = [agent.node for agent in storm.agents]
    for node in nodes:
        node.fill_disk()
    try:
        yield
    finally:
        for node in nodes:
            node.empty_disk()


@contextmanager
def read_only_disk(storm: Storm) -> Iterator[None]:
    nodes = [agent.node for agent in storm.agents]
    for node in nodes:
        node.let_write(False)
    try:
        yield
    finally:
        for node in nodes:
            node.let_write(True)


def clock_set(by_s: int) -> Around:
    @contextmanager
    def around(storm: Storm) -> Iterator[None]:
        storm.clock.write_text(f"{by_s:+}")
        try:
            yield
        finally:
            storm.clock.write_text("+0")

    return around


def clock_differs_by(by_s: int) -> Shows:
    def shows(before: Metrics, now: Metrics) -> bool:
        ahead = now.sum("plumbline_last_good_observation_timestamp_seconds") - time.time()
        return abs(ahead - by_s) < 60

    return shows


@contextmanager
def overflow(storm: Storm) -> Iterator[None]:
    """While the agents do not run, more happens than the kernel keeps for them."""
    for agent in storm.agents:
        agent.signal(signal.SIGSTOP)
    try:
        for agent in storm.agents:
            churn(agent.node.tree / "var/lib/kubelet", QUEUED_EVENTS)
    finally:
        for agent in storm.agents:
            agent.signal(signal.SIGCONT)
    yield


def churn(folder: Path, events: int) -> None:
    """At least so many; equal ones in a row would count once."""
    names = [folder / "churn-0", folder / "churn-1"]
    for name in names:
        name.touch()
    for i in range(events // 2 + 1):
        names[i % 2].rename(folder / f"churn-{i % 2}-away")
        (folder / f"churn-{i % 2}-away").rename(names[i % 2])
    for name in names:
        name.unlink()


OF_THE_API_SERVER = [
    *(
        Trouble(fault.name, met_with(fault), publishing_fails)
        for fault in (
            faulty_api.CONFLICT,
            faulty_api.TOO_MANY,
            faulty_api.INTERNAL,
            faulty_api.UNAVAILABLE,
            faulty_api.SILENCE,
            faulty_api.LOST_REPLY,
        )
    ),
    Trouble("410", watches_met_with(faulty_api.EXPIRED), watches_are_expired),
    Trouble("410 event", watches_met_with(faulty_api.EXPIRED_EVENT), watches_are_expired),
    Trouble("410 later", to_streams(FaultyApi.expire_streams), watches_are_expired),
    Trouble("cut stream", to_streams(FaultyApi.cut_streams), watches_are_cut),
    Trouble("idle connections closed", once(FaultyApi.close_idle)),
    Trouble("half-open connections", once(FaultyApi.lose_connections), publishing_fails),
    Trouble("no API server", api_server_down, publishing_fails),
    Trouble("certificate renewed", once(rotated_certificate)),
    Trouble("foreign certificate", foreign_certificate, publishing_fails),
    Trouble("token renewed", tokens_renewed),
    Trouble("token refused", tokens_refused, publishing_fails),
]
OF_THE_NODE = [
    Trouble(
        "kubelet ended",
        kubelet_away(signal.SIGTERM),
        kubelet_is_silent,
        kubelet_answers=False,
        kubelet_starts=True,
    ),
    Trouble(
        "kubelet killed",
        kubelet_away(signal.SIGKILL),
        kubelet_is_silent,
        kubelet_answers=False,
        kubelet_starts=True,
    ),
    Trouble("full disk", full_disk, state_is_old, kubelet_answers=False),
    Trouble("read-only disk", read_only_disk, state_is_old, kubelet_answers=False),
    Trouble("clock set forth", clock_set(7200), clock_differs_by(7200)),
    Trouble("clock set back", clock_set(-3600), clock_differs_by(-3600)),
    Trouble("inotify overflow", overflow, hints_are_lost),
]
