"""Our client of the API server beside the real one. `kube-exchanges` (test/kube/exchanges.cc) does them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness.cluster import Cluster

NAMESPACE = "kube-exchanges"


def exchanges(kubeconfig: Path, *arguments: str) -> dict[str, str]:
    done = subprocess.run(
        ["kube-exchanges", *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    print(done.stdout, done.stderr)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    yield NAMESPACE
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def test_each_verb_is_carried_out_and_each_refusal_is_understood(cluster: Cluster, namespace: str) -> None:
    saw = exchanges(cluster.control_plane.kubeconfig)

    assert saw["list nodes"].startswith(f"{len(cluster.nodes)} at ")
    assert saw["list by two"] == "more than ten true"
    assert saw["apply"] == "made true, the same again true, a change true"
    assert saw["apply another manager's field"].startswith(
        "ABORTED: apply configmaps kube-exchanges/map: HTTP 409:"
    )
    assert '.data.key: conflict with "one"' in saw["apply another manager's field"]
    assert saw["apply by force"] == "true"
    assert saw["merge"] == "true"
    assert saw["get what is not there"].startswith("NOT_FOUND: get configmaps kube-exchanges/none: HTTP 404:")
    assert saw["get a kind that is not served"].startswith("UNIMPLEMENTED: ")
    assert saw["create an invalid pod"].startswith(
        "INVALID_ARGUMENT: create pods in kube-exchanges: HTTP 422:"
    )
    assert "spec.containers: Required value" in saw["create an invalid pod"]
    assert "field not declared in schema" in saw["apply a field that there is not"]
    assert saw["apply a field that there is not"].startswith("INVALID_ARGUMENT: ")
    assert saw["create twice"].startswith("ALREADY_EXISTS: ")
    assert saw["delete"] == "OK"
    assert saw["watch"] == " synced +map ~map ~map ~map -map"


def test_a_missing_permission_is_named(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    cluster.api.create(account, {"metadata": {"name": "nobody"}})
    token = cluster.api.create(f"{account}/nobody/token", {"kind": "TokenRequest"})["status"]["token"]
    config = yaml.safe_load(cluster.control_plane.kubeconfig.read_text())
    (tmp_path / "token").write_text(token)
    config["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))

    said = exchanges(tmp_path / "config", "nodes")["list nodes"]

    assert said.startswith("PERMISSION_DENIED: list nodes: HTTP 403:")
    assert said.endswith("missing permission: list nodes")
