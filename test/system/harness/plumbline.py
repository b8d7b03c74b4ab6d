"""Plumbline's programs, as a scenario runs them. They are found by PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from .api import Object
from .node import Node
from .process import Failed


def dry_run(node: Node) -> Object:
    """The NodePlacement that the agent shows when it runs as a pod of the node would."""
    return _placement(node.run("plumbline-agent", "--dry-run", "-o", "json").stdout)


def dry_run_elsewhere(node: Node) -> Object:
    """The same outside of the node, from its files and its kubelet's socket."""
    # From inside of the tree: its own path may be too long for a socket's, which is 107 bytes at most.
    where = ["--root", ".", "--kubelet-config", "/var/lib/kubelet/config.yaml"]
    command = ["plumbline-agent", "--dry-run", "-o", "json", "--node-name", node.name, *where]
    return _placement(_run(command, ok=[0], folder=node.tree))


def both_objects(node: Node) -> tuple[Object, Object]:
    """NodeResourceTopology and NodePlacement as they would be published."""
    nrt, placement = json.loads(node.run("plumbline-agent", "--dry-run", "-o", "json").stdout)["items"]
    return nrt, placement


def dry_run_as_pod(node: Node, pod_spec: Object) -> Object:
    """The same from within the mounts and with the privileges of a DaemonSet's pod."""
    where = [argument for argument in pod_spec["containers"][0]["args"] if argument.startswith("--root=")]
    command = ["plumbline-agent", "--dry-run", "-o", "json", *where]
    return _placement(node.run(*as_pod(node, pod_spec, found("plumbline-agent").parent, command)).stdout)


def as_pod(
    node: Node,
    pod_spec: Object,
    programs: Path,
    command: list[str],
    mounts: list[str] | None = None,
    blind: bool = False,
) -> list[str]:
    """What to run on the node so that the command runs as the pod's container would. The command may
    begin with variables of its environment. `mounts` are further ones, SOURCE:TARGET. What is blind is
    told of no change by inotify."""
    sources = {v["name"]: v.get("hostPath", {}).get("path", "") for v in pod_spec["volumes"]}
    own = [f"{sources[m['name']]}:{m['mountPath']}" for m in pod_spec["containers"][0]["volumeMounts"]]
    return [
        *("env", f"NODE_NAME={node.name}", *(["INOTIFY_WATCHES=0"] if blind else [])),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"),
        *(str(Path(__file__).with_name("as_container.sh")), str(programs), *own, *(mounts or []), "--"),
        *command,
    ]


def release() -> Path:
    """The folder of the agent as it is shipped; the one in PATH has sanitizers."""
    try:
        return Path(os.environ["SYSTEM_RELEASE"])
    except KeyError:
        raise Failed("SYSTEM_RELEASE names no folder; run scripts/test --system") from None


def found(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise Failed(f"no {program} in PATH")
    return Path(path)


def simulate(placement: Object, pod: Object, folder: Path) -> Object:
    """What `plumbline simulate` says of one pod on the node."""
    node_file, pod_file = folder / "node.json", folder / "pod.json"
    node_file.write_text(json.dumps(placement))
    pod_file.write_text(json.dumps(pod))
    command = ["plumbline", "simulate", "-o", "json", "--node", str(node_file), str(pod_file)]
    said = json.loads(_run(command, ok=[0, 1]))
    predicted: Object = said["pods"][0]
    return predicted


def _placement(output: str) -> Object:
    placement: Object = next(item for item in json.loads(output)["items"] if item["kind"] == "NodePlacement")
    return placement


def _run(command: list[str], ok: list[int], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode not in ok:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
