"""When a kubelet's state file got to say something, by the kernel's own clock."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import threading
from pathlib import Path

IN_MOVED_TO = 0x80
_HEAD = struct.Struct("iIII")  # of struct inotify_event: wd, mask, cookie, len
FILE = "cpu_manager_state"


class StateWatch:
    """Of the cpu_manager_state of some kubelets. A rename sets the file's ctime: it is that which counts, not
    when this program gets to read it."""

    def __init__(self, kubelet_folders: list[Path]) -> None:
        self._renamed: dict[str, float] = {}  # when the file first had an entry, by the pod's UID
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = libc.inotify_init1(os.O_CLOEXEC)
        self._folders = {
            libc.inotify_add_watch(self._inotify, bytes(folder), IN_MOVED_TO): folder
            for folder in kubelet_folders
        }
        assert min(self._folders) > 0, os.strerror(ctypes.get_errno())
        threading.Thread(target=self._follow, daemon=True).start()

    def renamed(self, uid: str) -> float | None:
        """The wall clock's time of the rename that brought an entry for the pod; up to a tick (4 ms) early,
        since the kernel stamps files by its last tick."""
        return self._renamed.get(uid)

    def _follow(self) -> None:
        while events := os.read(self._inotify, 1 << 16):
            while events:
                watch, _, _, length = _HEAD.unpack_from(events)
                name = events[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode()
                events = events[_HEAD.size + length :]
                if name == FILE:
                    self._note(self._folders[watch] / FILE)

    def _note(self, path: Path) -> None:
        with path.open() as file:
            at = os.fstat(file.fileno()).st_ctime
            for uid in json.load(file).get("entries") or {}:
                self._renamed.setdefault(uid, at)
