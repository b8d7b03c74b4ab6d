"""Kernel lists of CPUs, "0-3,8"."""

from __future__ import annotations

from .machine.tree import format_list as render

__all__ = ["parse", "render"]


def parse(text: str) -> set[int]:
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
