"""A tree of files as the kernel's sysfs and procfs show them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path


class Tree:
    """A folder that is being filled. Paths are below it: "sys/devices/system/node/online"."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: str, value: object) -> None:
        """One value and the newline that the kernel ends it with."""
        self.put_bytes(path, f"{value}\n".encode())

    def put_all(self, folder: str, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            self.put(f"{folder}/{name}", value)

    def put_bytes(self, path: str, content: bytes) -> None:
        self.folder(os.path.dirname(path))
        (self._root / path).write_bytes(content)

    def folder(self, path: str) -> None:
        (self._root / path).mkdir(parents=True, exist_ok=True)

    def link(self, path: str, target: str) -> None:
        """Links to another path of the tree, relative as the kernel's links are."""
        folder = os.path.dirname(path)
        self.folder(folder)
        os.symlink(os.path.relpath(target, folder), self._root / path)


def format_list(ids: Iterable[int]) -> str:
    """The kernel's list of ids: "0-3,8"; "" is the empty one."""
    ranges: list[list[int]] = []
    for number in sorted(ids):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def format_mask(ids: Iterable[int], bits: int) -> str:
    """The kernel's mask of ids below `bits`: words of 32 bits in hex, "00f,0000000f"."""
    value = sum(1 << number for number in ids)
    words = []
    for low in range(0, bits, 32):
        digits = (min(32, bits - low) + 3) // 4
        words.append(f"{value >> low & 0xFFFFFFFF:0{digits}x}")
    return ",".join(reversed(words))
