"""What every scenario can ask for. They share one cluster; a scenario leaves it as it found it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import Cluster, peers_folder
from harness.installation import Installation
from harness.manifests import Kubectl
from harness.presets import NODES, USUAL
from harness.process import Failed

DIED = pytest.StashKey[str]()  # which program ended by itself, and how


@pytest.fixture(scope="session")
def run_folder() -> Path:
    folder = Path(os.environ["SYSTEM_FOLDER"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def cluster(run_folder: Path) -> Cluster:
    started = Cluster(run_folder, peers_folder())
    started.start([NODES[name] for name in USUAL])
    print(" · ".join(f"{what} {seconds:.1f} s" for what, seconds in started.times.items()))
    return started


@pytest.fixture(scope="module")
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, kubectl: Kubectl, run_folder: Path) -> Iterator[Installation]:
    """The default overlay is applied, and an agent's pod runs on each node."""
    installation = Installation(cluster, kubectl, run_folder / "manifests/installed")
    yield installation
    installation.remove()


@pytest.fixture(autouse=True)
def nothing_died(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a program of the cluster died, the other scenarios could only fail: they are not begun."""
    yield
    if "cluster" in request.fixturenames:
        try:
            request.getfixturevalue("cluster").programs.check()
        except Failed as died:
            request.session.shouldfail = request.config.stash[DIED] = str(died).partition(";")[0]
            raise


def pytest_terminal_summary(terminalreporter: Any) -> None:
    failures = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    if failures:
        first = f"{failures[0].nodeid}: {failures[0].longrepr.reprcrash.message}"
        terminalreporter.write_line(
            f"the first that went wrong: {terminalreporter.config.stash.get(DIED, first)}"
        )
        terminalreporter.write_line(f"all logs: {os.environ['SYSTEM_FOLDER']}/logs")
