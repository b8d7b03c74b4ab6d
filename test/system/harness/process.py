"""Programs that run while a scenario does: each with a log and an empty working directory of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Failed(AssertionError):
    """Something did not come about. The message says what was tried, on what, and why it failed."""


class Program:
    """A running program. Its output goes to `log`."""

    def __init__(self, name: str, command: list[str], log: Path, working_directory: Path) -> None:
        self.name = name
        self.log = log
        # A kubelet has been seen to delete the plain files of the folder it was started in.
        working_directory.mkdir(parents=True, exist_ok=True)
        assert not any(working_directory.iterdir()), f"{working_directory} is not empty"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=working_directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def pid(self) -> int:
        """Of the program itself, in the sandbox: nsenter and unshare stay around as its parents."""
        pid = self._process.pid
        while Path(f"/proc/{pid}/comm").read_text().strip() in ("nsenter", "unshare"):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if not children:
                break
            pid = int(children[0])
        return pid

    def check(self) -> None:
        """Fails if the program ended by itself."""
        if (status := self._process.poll()) is not None:
            raise Failed(f"{self.name} ended with status {status}; {self.log} ends:\n{self.log_tail()}")

    def log_tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, how: signal.Signals = signal.SIGTERM, patience_s: float = 10) -> None:
        if self._process.poll() is not None:
            return
        self._signal(how)
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, how: signal.Signals) -> None:
        try:
            os.kill(self.pid, how)
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            pass


class Programs:
    """All that runs, and the folder in which all logs lie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, Program] = {}

    def start(self, name: str, command: list[str]) -> Program:
        program = Program(name, command, self.logs / f"{name}.log", self.folder / "empty" / name)
        self._running[name] = program
        return program

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM, patience_s: float = 10) -> None:
        self._running.pop(name).stop(how, patience_s)

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def kill_all(self, prefix: str) -> None:
        """Those whose names begin so, the last that was started first."""
        for name in reversed([name for name in self._running if name.startswith(prefix)]):
            self.stop(name, signal.SIGKILL)

    def check(self) -> None:
        for program in list(self._running.values()):  # other threads start more
            program.check()

    def until(
        self, what: str, probe: Callable[[], T | None], limit_s: float = 30, pause_s: float = 0.05
    ) -> T:
        """Asks again and again until the answer is neither None nor False. Ends at once where a program
        died, so that the first thing that went wrong is the one that is told."""
        end = time.monotonic() + limit_s
        last: Exception | None = None
        while True:
            self.check()
            try:
                if answer := probe():
                    return answer
                last = None
            except (Failed, OSError) as error:
                last = error
            if time.monotonic() > end:
                raise Failed(
                    f"{what}: not within {limit_s:g} s" + (f"; last: {last}" if last else "")
                ) from last
            time.sleep(pause_s)


@contextmanager
def stopwatch(times: dict[str, float], what: str) -> Iterator[None]:
    """Adds the seconds that passed inside to `times`."""
    began = time.monotonic()
    yield
    times[what] = times.get(what, 0) + time.monotonic() - began
