"""Brings a cluster up for a developer's hand, runs a command or a shell in it, and takes it away."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .cluster import Cluster, peers_folder
from .presets import NODES, USUAL


def main() -> int:
    parser = argparse.ArgumentParser(prog="test/system/up", description=__doc__)
    parser.add_argument(
        "--nodes", default=",".join(USUAL), help=f"of {', '.join(NODES)} (default: {','.join(USUAL)})"
    )
    parser.add_argument("command", nargs="*", help="run in the cluster; default: a shell")
    arguments = parser.parse_args()
    names = arguments.nodes.split(",")
    if unknown := [name for name in names if name not in NODES]:
        parser.error(f"no such node: {', '.join(unknown)}; there are {', '.join(NODES)}")

    folder = Path(os.environ["SYSTEM_FOLDER"])
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    cluster = Cluster(folder, peers_folder())
    cluster.start([NODES[name] for name in names])
    write_on(cluster)
    in_cluster = write_in_cluster(cluster)
    print(
        f"The cluster is up after {time.monotonic() - began:.1f} s; logs are in {cluster.programs.logs}.\n"
        "  kubectl get nodes                               KUBECONFIG is set\n"
        f"  on {names[0]} plumbline-agent --dry-run         runs a command on a node",
        file=sys.stderr,
    )
    if not arguments.command:
        print("Leaving this shell takes the cluster away.", file=sys.stderr)
    return subprocess.run([str(in_cluster), *arguments.command]).returncode


def write_in_cluster(cluster: Cluster) -> Path:
    """The program `in-cluster [COMMAND...]`, also of those who join."""
    environment = {
        "KUBECONFIG": str(cluster.control_plane.kubeconfig),
        "PATH": f"{cluster.programs.folder}/bin:{peers_folder()}:{os.environ['PATH']}",
        "PS1": "(cluster) $ ",
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    return _write_program(
        cluster,
        "in-cluster",
        "# Runs a command, or a shell, that finds the cluster.\n"
        f'{exports}if (($#)); then exec "$@"; fi\nexec bash --noprofile --norc -i\n',
    )


def write_on(cluster: Cluster) -> None:
    """The program `on NODE COMMAND...`."""
    cases = "".join(
        f"  {node.name}) exec {' '.join(node.inside())} \"$@\" ;;\n" for node in cluster.nodes.values()
    )
    _write_program(
        cluster,
        "on",
        "# Runs a command on a node: on NODE COMMAND...\n"
        f"node=${{1:?NODE}}\nshift\ncase $node in\n{cases}"
        '  *) echo "on: no node $node" >&2 && exit 2 ;;\nesac\n',
    )


def _write_program(cluster: Cluster, name: str, script: str) -> Path:
    program = cluster.programs.folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/bash\n{script}")
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
