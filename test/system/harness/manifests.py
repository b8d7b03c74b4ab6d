"""Our manifests, as a user applies them: with kubectl."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from .api import Object
from .cluster import Cluster, peers_folder
from .process import Failed

MANIFESTS = Path(__file__).parents[3] / "manifests"


class Kubectl:
    """The administrator's."""

    def __init__(self, cluster: Cluster) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(cluster.control_plane.kubeconfig)}

    def __call__(self, *arguments: str, document: str | None = None) -> str:
        """What it prints. A warning of it, or of the API server, is a failure."""
        done = subprocess.run(
            [str(peers_folder() / "kubectl"), *arguments],
            env=self._environment,
            input=document,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode or done.stderr:
            said = f"status {done.returncode}: {done.stderr.strip()}"
            raise Failed(f"kubectl {' '.join(arguments)}: {said}")
        return done.stdout


def kustomization(folder: Path, overlay: str, components: list[str] | None = None, **more: Any) -> Path:
    """As a user writes one: an overlay of ours, and what is changed. kustomize takes relative paths only."""

    def relative(path: str) -> str:
        return os.path.relpath(MANIFESTS / path, folder)

    folder.mkdir(parents=True, exist_ok=True)
    written = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [relative(overlay)],
        "components": [relative(f"components/{name}") for name in components or []],
        **more,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(written))
    return folder


def rendered(kubectl: Kubectl, folder: Path) -> list[Object]:
    return list(yaml.safe_load_all(kubectl("kustomize", str(folder))))


def daemon_set(kubectl: Kubectl, folder: Path) -> Object:
    return next(item for item in rendered(kubectl, folder) if item["kind"] == "DaemonSet")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())
