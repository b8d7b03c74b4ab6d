"""Whatever way a sandbox ends, nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

SANDBOX = Path(__file__).parents[1] / "sandbox"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the sandbox needs root")


class Occupied:
    """A sandbox in which a process runs that ignores signals, in a session of its own, on a port, and
    with a file system mounted."""

    def __init__(self, folder: Path) -> None:
        self.mark = f"mark-{uuid.uuid4()}"
        self.mounted = folder / "mounted"
        self.mounted.mkdir()
        inside = f"""
          mount -t tmpfs {self.mark} {self.mounted}
          touch {self.mounted}/inside
          setsid bash -c 'trap "" TERM INT HUP; while :; do sleep 1; done' {self.mark} &
          until pgrep -f {self.mark} > /dev/null; do sleep 0.01; done
          echo ready
          read -r end && exit "$end"
        """
        self.process = subprocess.Popen(
            [str(SANDBOX), "bash", "-c", inside],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # As in a terminal: what runs these tests in the background may have it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert self.process.stdout and self.process.stdout.readline() == "ready\n"

    def end_with(self, status: int) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{status}\n")
        self.process.stdin.flush()

    def signal_all(self, how: signal.Signals) -> None:
        """As a terminal does by Ctrl-C, or timeout(1)."""
        os.killpg(self.process.pid, how)

    def left(self) -> list[str]:
        found = subprocess.run(["pgrep", "-f", self.mark], capture_output=True, text=True).stdout.split()
        return found + [line for line in Path("/proc/mounts").read_text().splitlines() if self.mark in line]


@pytest.mark.parametrize(
    "how, status",
    [
        (lambda sandbox: sandbox.end_with(0), 0),
        (lambda sandbox: sandbox.end_with(3), 3),
        (lambda sandbox: sandbox.signal_all(signal.SIGINT), None),
        (lambda sandbox: sandbox.signal_all(signal.SIGTERM), None),
        (lambda sandbox: sandbox.process.kill(), None),
    ],
    ids=["success", "failure", "Ctrl-C", "SIGTERM", "SIGKILL"],
)
def test_nothing_is_left_after(how: Callable[[Occupied], None], status: int | None, tmp_path: Path) -> None:
    sandbox = Occupied(tmp_path)
    assert sandbox.left(), "the test would see what is left"
    assert not (sandbox.mounted / "inside").exists(), "what is mounted inside is seen only inside"
    how(sandbox)
    ended = sandbox.process.wait(10)
    assert status is None or ended == status
    deadline = time.monotonic() + 10
    while sandbox.left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sandbox.left() == []


def test_two_sandboxes_do_not_meet(tmp_path: Path) -> None:
    serve = """
      python3 -m http.server --bind $SYSTEM_CONTROL_PLANE 6443 > /dev/null 2>&1 &
      until { : < /dev/tcp/$SYSTEM_CONTROL_PLANE/6443; } 2> /dev/null; do kill -0 $! || exit; sleep 0.05; done
      echo up
      read -r _
    """
    servers = [
        subprocess.Popen(
            [str(SANDBOX), "bash", "-c", serve],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    assert [server.stdout.readline() for server in servers if server.stdout] == [b"up\n", b"up\n"]
    for server in servers:
        server.communicate(b"end\n", timeout=10)


def test_a_sandbox_that_ends_leaves_the_mount_points_to_the_others_and_the_last_removes_them() -> None:
    on_a_host_without_them = """
      mount -t tmpfs lacking /var/lib
      mount -t tmpfs lacking /run
      mkfifo /run/up /run/end /run/ended
      "$1" bash -c 'echo > /run/up; read -r < /run/end' &
      first=$!
      read -r < /run/up
      "$1" bash -c '
        mount -t tmpfs mine /var/lib/kubelet
        touch /var/lib/kubelet/inside
        echo > /run/end
        read -r < /run/ended
        ls /var/lib/kubelet
      ' &
      second=$!
      wait $first
      echo > /run/ended
      wait $second
      [[ -e /var/lib/kubelet ]] || echo removed
    """
    said = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", on_a_host_without_them, "", SANDBOX],
        stdout=subprocess.PIPE,
        text=True,
        timeout=20,
    ).stdout.split()
    assert said == ["inside", "removed"]
