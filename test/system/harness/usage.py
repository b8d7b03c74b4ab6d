"""What a process takes, as its kernel counts it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Memory:
    resident_kib: int
    anonymous_kib: int  # of it, what no file has


def memory(pid: int) -> Memory:
    status = Path(f"/proc/{pid}/status").read_text()
    values = dict(re.findall(r"^(\w+):\s+(\d+) kB$", status, re.MULTILINE))
    return Memory(int(values["VmRSS"]), int(values["RssAnon"]))


def cpu_s(pid: int) -> float:
    """Seconds of CPU so far, of all threads that still run: nanoseconds, where /proc/PID/stat counts ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def cpu_share(pid: int, seconds: float) -> float:
    """Of one core, over some time from now on."""
    before, began = cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - began)
