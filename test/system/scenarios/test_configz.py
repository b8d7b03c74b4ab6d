"""A running agent asks its kubelet for the configuration in force, and trusts nobody else with its token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from harness.agent import Agent
from harness.cluster import Cluster
from harness.control_plane import ADDRESS, PORT
from harness.impostor import Impostor
from harness.installation import Installation
from harness.node import KUBELET_PORT, Node
from harness.pki import Pki

ELSEWHERE = "127.0.0.2"  # where a kubelet listens that is said to listen on its node's address


@contextmanager
def agent_on(installed: Installation, node: Node) -> Iterator[Agent]:
    agent = Agent(installed, node, (ADDRESS, PORT))
    agent.start()
    try:
        agent.until_ready()
        yield agent
    finally:
        agent.stop()


def config_source(agent: Agent) -> str:
    source: str = agent.placement()["status"]["kubelet"]["configSource"]
    return source


@pytest.mark.parametrize("name, signed", [("two-socket", False), ("snc", True)])
def test_an_agent_has_the_configuration_from_its_kubelet_whoever_signed_the_certificate(
    cluster: Cluster, installed: Installation, name: str, signed: bool
) -> None:
    node = cluster.nodes[name]
    assert node.spec.signed_certificate == signed
    with agent_on(installed, node) as agent:
        cluster.programs.until("the kubelet is asked", lambda: config_source(agent) == "configz")
        said = agent.placement()["status"]["kubelet"]
        manager = said["topologyManager"]
        assert (manager["policy"], manager["scope"]) == (node.spec.policy, node.spec.scope)
        if name == "two-socket":
            follows_a_restart(cluster, agent)


def follows_a_restart(cluster: Cluster, agent: Agent) -> None:
    """What counts is what the kubelet that runs was started with."""

    def has(policy: str) -> bool:
        said = agent.placement()["status"]["kubelet"]
        return bool((said["topologyManager"]["policy"], said["configSource"]) == (policy, "configz"))

    with configured(cluster, agent.node, topologyManagerPolicy="best-effort"):
        cluster.programs.until("the new kubelet is asked", lambda: has("best-effort"), limit_s=60)
    cluster.programs.until("and the next one", lambda: has(agent.node.spec.policy), limit_s=60)


@contextmanager
def configured(cluster: Cluster, node: Node, **fields: object) -> Iterator[None]:
    """The node's kubelet runs with these fields of its configuration."""
    file = node.tree / "var/lib/kubelet/config.yaml"
    usual = file.read_text()

    def run_with(text: str) -> None:
        node.stop_kubelet()
        file.write_text(text)
        node.start_kubelet()
        cluster.until_ready(node)

    run_with(yaml.safe_dump({**yaml.safe_load(usual), **fields}))
    try:
        yield
    finally:
        run_with(usual)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_token_goes_to_nobody_whose_certificate_is_neither_the_clusters_nor_the_nodes_own(
    cluster: Cluster, installed: Installation, run_folder: Path, trusted: bool
) -> None:
    """The same with a certificate of the cluster's authority shows that he would have heard of the token."""
    node = cluster.nodes["misled"]
    authority = cluster.control_plane.pki if trusted else Pki(run_folder / "foreign-authority")
    authority.server("impostor", [node.name, node.address])
    certificate, key = (authority.folder / f"impostor.{end}" for end in ("crt", "key"))
    answer = {"kubeletconfig": {**node.kubelet_configuration(), "topologyManagerPolicy": "best-effort"}}
    with configured(cluster, node, address=ELSEWHERE):
        impostor = Impostor(node.address, KUBELET_PORT, certificate, key, answer)
        try:
            with agent_on(installed, node) as agent:
                if trusted:
                    cluster.programs.until("he is believed", lambda: config_source(agent) == "configz")
                    (request,) = impostor.requests
                    assert request.startswith("GET /configz HTTP/1.1\r\n")
                    assert agent.token in request
                    return
                # By the authority, and by the kubelet's own certificate.
                cluster.programs.until("he is turned away", lambda: len(impostor.turned_away) >= 2)
                cluster.programs.until("the agent says so", lambda: "state=failed" in agent.log)
                assert impostor.requests == []
                assert config_source(agent) == "file"
                assert agent.placement()["status"]["kubelet"]["topologyManager"]["policy"] == node.spec.policy
        finally:
            impostor.stop()
