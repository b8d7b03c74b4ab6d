"""plumbline-agent as it runs in a cluster: on a node, in the place of the DaemonSet's pod there."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import requests

from . import truth
from .api import Object
from .installation import LEASES, NRTS, PLACEMENTS, Installation, agents_token
from .node import Node
from .plumbline import as_pod, found
from .process import Failed, Program

ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
METRICS_PORT = 8080
ASK_AGAIN_S = 1.0  # the kubelet, which may still be on its way


class AccountFolder:
    """What a kubelet projects into a pod: token, authority and namespace, replaced all at once by the
    rename of a link."""

    def __init__(self, folder: Path, authority: Path, namespace: str) -> None:
        self.folder = folder
        self._authority = authority
        self._namespace = namespace
        self._written = 0

    def write(self, token: str) -> None:
        self._written += 1
        content = self.folder / f"..{self._written}"
        content.mkdir(parents=True)
        (content / "token").write_text(token)
        (content / "ca.crt").write_bytes(self._authority.read_bytes())
        (content / "namespace").write_text(self._namespace)
        link = self.folder / "..data"
        part = self.folder / "..data_tmp"
        part.symlink_to(content.name)
        part.rename(link)
        if self._written == 1:
            for file in ("token", "ca.crt", "namespace"):
                (self.folder / file).symlink_to(f"..data/{file}")


class Agent:
    """One at a time on a node."""

    def __init__(
        self,
        installation: Installation,
        node: Node,
        api_server: tuple[str, int],
        *arguments: str,
        programs: Path | None = None,
        environment: Iterable[str] = (),
        mounts: Iterable[str] = (),
        blind: bool = False,
    ) -> None:
        """`arguments` go before the DaemonSet's. `programs` is the folder with the build to run; the rest is
        as for as_pod."""
        cluster = installation.cluster
        self.node = node
        self.token = ""
        self.name = f"agent-{node.name}"
        self._installation = installation
        self._programs = cluster.programs
        self._build = programs or found("plumbline-agent").parent
        self._arguments = arguments
        self._environment = [
            f"KUBERNETES_SERVICE_HOST={api_server[0]}",
            f"KUBERNETES_SERVICE_PORT={api_server[1]}",
            *environment,
        ]
        folder = cluster.programs.folder / "accounts" / f"{node.name}-{time.monotonic_ns()}"
        self.account = AccountFolder(folder, cluster.control_plane.pki.ca, "plumbline-system")
        self._mounts = [f"{folder}:{ACCOUNT_FOLDER}", *mounts]
        self._pod_spec = installation.pod_spec()
        self._blind = blind
        self._program: Program | None = None

    # Life

    def start(self) -> None:
        """Does not wait for anything."""
        if not self.token:
            self.renew_token()
        own = [f"--metrics-address={self.node.address}", *self._arguments]
        set_here = {argument.partition("=")[0] for argument in own}
        given = self._pod_spec["containers"][0]["args"]
        usual = [argument for argument in given if argument.partition("=")[0] not in set_here]
        command = ["plumbline-agent", *usual, *own]
        inside = as_pod(
            self.node, self._pod_spec, self._build, [*self._environment, *command], self._mounts, self._blind
        )
        self._program = self._programs.start(self.name, self.node.inside(*inside))

    def until_ready(self) -> None:
        """It has published."""
        self._programs.until(f"{self.name} is ready", self.is_ready)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._programs.stop(self.name, how)
        self._program = None

    def renew_token(self) -> str:
        """Returns the one before, which goes on being good."""
        before, self.token = self.token, agents_token(self._installation.cluster, self.node.name)
        self.account.write(self.token)
        return before

    def signal(self, which: signal.Signals) -> None:
        os.kill(self.pid, which)

    @property
    def pid(self) -> int:
        if self._program is None:
            raise Failed(f"{self.name} does not run")
        return self._program.pid

    @property
    def log(self) -> str:
        return (self._programs.logs / f"{self.name}.log").read_text()

    # What it says of itself

    def is_ready(self) -> bool:
        return self._ask("readyz").ok

    def is_alive(self) -> bool:
        return self._ask("healthz").ok

    def metrics(self) -> Metrics:
        return Metrics(self._ask("metrics").text)

    def _ask(self, path: str) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"http://{self.node.address}:{METRICS_PORT}/{path}", timeout=5)

    # What it publishes

    def placement(self) -> Object:
        item = self._installation.cluster.api.get(f"{PLACEMENTS}/{self.node.name}")
        if "status" not in item:
            raise Failed(f"NodePlacement {self.node.name} has no status (yet): it takes two writes")
        return item

    def nrt(self) -> Object:
        return self._installation.cluster.api.get(f"{NRTS}/{self.node.name}")

    def lease(self) -> Object:
        return self._installation.cluster.api.get(f"{LEASES}/{self.node.name}")

    def condition(self, type: str) -> Object | None:
        """Of NodePlacement."""
        conditions = self.placement()["status"]["conditions"]
        return next((one for one in conditions if one["type"] == type), None)

    def until_true(self, limit_s: float = 30, nrt: bool = True) -> float:
        """Until it is what the kubelet says. Returns how long that took, in seconds."""
        word = truth.Word(self.node)
        began = asked = time.monotonic()

        def agrees() -> bool:
            nonlocal word, asked
            if found := self._differences(word, nrt):
                if time.monotonic() > asked + ASK_AGAIN_S:
                    word, asked = truth.Word(self.node), time.monotonic()
                raise Failed("\n".join(found))
            return True

        self._programs.until(f"what is published of {self.node.name} is true", agrees, limit_s)
        return time.monotonic() - began

    def _differences(self, word: truth.Word, nrt: bool) -> list[str]:
        found = word.against_placement(self.placement())
        return found + (word.against_nrt(self.nrt()) if nrt else [])

    def until_condition(self, type: str, status: str, reason: str, limit_s: float = 30) -> str:
        """Returns its message, "" where it has none."""

        def found() -> Object | None:
            one = self.condition(type)
            return one if one and (one["status"], one["reason"]) == (status, reason) else None

        condition = self._programs.until(f"condition {type}={status} {reason}", found, limit_s)
        message: str = condition.get("message", "")
        return message

    def until_no_condition(self, type: str, status: str, limit_s: float = 90) -> None:
        def gone() -> bool:
            one = self.condition(type)
            return one is None or bool(one["status"] != status)

        self._programs.until(f"condition {type} is {status} no more", gone, limit_s)


class Metrics:
    """Samples of Prometheus' text format."""

    _SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
    _LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

    def __init__(self, text: str) -> None:
        self.samples = [
            (name, dict(self._LABEL.findall(labels)), float(value))
            for name, labels, value in self._SAMPLE.findall(text)
        ]

    def sum(self, name: str, **labels: str) -> float:
        """Of the samples that have these labels, and maybe more; 0 where there is none."""
        return sum(
            value
            for sample, its_labels, value in self.samples
            if sample == name and labels.items() <= its_labels.items()
        )

    def by(self, name: str, *labels: str) -> dict[str, float]:
        """The samples of a name, by the values of some labels."""
        found: dict[str, float] = {}
        for sample, its_labels, value in self.samples:
            if sample == name:
                key = " ".join(its_labels[label] for label in labels)
                found[key] = found.get(key, 0) + value
        return found

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason by type, as of the last good observation."""
        return {
            labels["type"]: (labels["status"], labels["reason"])
            for name, labels, value in self.samples
            if name == "plumbline_condition" and value == 1
        }
