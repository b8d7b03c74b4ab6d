#!/usr/bin/python3
"""Makes the one container image of the guest: a shell that says where it may run, and waits.

image.py BUSYBOX FILE     writes FILE, an archive as "docker save" makes them
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

NAME = "localhost/waits:1"
# A shell ends when the kubelet asks it to only if it has a trap; as process 1 it would not without.
COMMAND = "trap exit TERM; grep _allowed_list: /proc/self/status; sleep infinity & wait"


def tar(files: dict[str, bytes]) -> bytes:
    """An archive of executable files; without owners and times, so that equal contents give equal bytes."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def image(busybox: bytes) -> bytes:
    layer = tar({"bin/busybox": busybox})
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/bin/busybox", "sh", "-c", COMMAND]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer)]},
        }
    ).encode()
    config_name = sha256(config) + ".json"
    manifest = [{"Config": config_name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    return tar({config_name: config, "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()})


if __name__ == "__main__":
    busybox, archive = map(Path, sys.argv[1:])
    archive.write_bytes(image(busybox.read_bytes()))
