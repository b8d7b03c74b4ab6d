"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each the real one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import requests
import yaml

from .api import Api, ApiError, Object, get_unverified
from .pki import Pki
from .process import Failed, Programs

ADDRESS = os.environ.get("SYSTEM_CONTROL_PLANE", "10.210.0.1")  # an address of the sandbox's loopback device
PORT = 6443
SERVER = f"https://{ADDRESS}:{PORT}"

# Those whose work a scenario can see. The others would only cost time.
CONTROLLERS = [
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
    "validatingadmissionpolicy-status-controller",
]


class ControlPlane:
    def __init__(self, programs: Programs, peers: Path) -> None:
        self._programs = programs
        self._peers = peers
        self.pki = Pki(programs.folder / "pki")
        self.pki.make_key("service-accounts")
        self.pki.server("kube-apiserver", [ADDRESS, "127.0.0.1", "kubernetes.default.svc", "localhost"])
        self.pki.client("kube-apiserver-kubelet-client", "kube-apiserver", "system:masters")
        self.api = self.client("admin", "admin", "system:masters")
        self.kubeconfig = self.write_kubeconfig("admin")

    def start(self) -> None:
        self._start_etcd()
        self._start_api_server()
        self._start_controller_manager()
        self.start_scheduler()
        # Pods can be created from the moment on that their namespace has its service account.
        self._programs.until(
            "the default service account exists",
            lambda: self.api.exists("/api/v1/namespaces/default/serviceaccounts/default"),
        )

    def client(self, file: str, user: str, group: str | None = None) -> Api:
        self.pki.client(file, user, group)
        return Api(
            SERVER, self.pki.ca, certificate=(self._pki_file(f"{file}.crt"), self._pki_file(f"{file}.key"))
        )

    def with_token(self, token: str) -> Api:
        return Api(SERVER, self.pki.ca, token=token)

    def write_kubeconfig(self, file: str) -> Path:
        """A kubeconfig for the client certificate FILE.crt."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": SERVER, "certificate-authority": str(self.pki.ca)}}
            ],
            "users": [
                {
                    "name": file,
                    "user": {
                        "client-certificate": str(self._pki_file(f"{file}.crt")),
                        "client-key": str(self._pki_file(f"{file}.key")),
                    },
                }
            ],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": file}}],
            "current-context": "test",
        }
        path = self._programs.folder / f"{file}.kubeconfig"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def start_scheduler(self, extender: Object | None = None) -> None:
        """The stock scheduler; `extender` is an entry of KubeSchedulerConfiguration's extenders."""
        self.pki.client("kube-scheduler", "system:kube-scheduler")
        kubeconfig = self.write_kubeconfig("kube-scheduler")
        configuration: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 2000, "burst": 2000},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
            "extenders": [extender] if extender else [],
        }
        path = self._programs.folder / "kube-scheduler.yaml"
        path.write_text(yaml.safe_dump(configuration, sort_keys=False))
        self._start(
            "kube-scheduler",
            f"--config={path}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._programs.folder / 'scheduler-certificates'}",
            "-v=2",
        )
        self._until_healthy("kube-scheduler", 10259)

    def stop_scheduler(self) -> None:
        self._programs.stop("kube-scheduler")

    def _start_etcd(self) -> None:
        url = "http://127.0.0.1:2379"
        peer = "http://127.0.0.1:2380"
        self._start(
            "etcd",
            f"--data-dir={self._programs.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _start_api_server(self) -> None:
        self._start(
            "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={ADDRESS}",
            f"--secure-port={PORT}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--client-ca-file={self.pki.ca}",
            f"--tls-cert-file={self._pki_file('kube-apiserver.crt')}",
            f"--tls-private-key-file={self._pki_file('kube-apiserver.key')}",
            f"--kubelet-client-certificate={self._pki_file('kube-apiserver-kubelet-client.crt')}",
            f"--kubelet-client-key={self._pki_file('kube-apiserver-kubelet-client.key')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._pki_file('service-accounts.pub')}",
            f"--service-account-signing-key-file={self._pki_file('service-accounts.key')}",
            "--profiling=false",
        )
        self._programs.until("kube-apiserver is ready", self._api_server_is_ready, limit_s=60)

    def _api_server_is_ready(self) -> bool:
        try:
            self.api.get("/readyz")
        except ApiError as error:
            raise Failed(f"{error}") from error
        except requests.RequestException as error:
            raise Failed(f"{type(error).__name__}") from error
        return True

    def _start_controller_manager(self) -> None:
        self.pki.client("kube-controller-manager", "system:kube-controller-manager")
        kubeconfig = self.write_kubeconfig("kube-controller-manager")
        self._start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._pki_file('service-accounts.key')}",
            f"--root-ca-file={self.pki.ca}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._programs.folder / 'controller-manager-certificates'}",
            "--node-monitor-period=1s",
        )

    def _until_healthy(self, name: str, port: int) -> None:
        def healthy() -> bool:
            # Its certificate is made by itself at each start; only the word "ok" is wanted of it.
            return get_unverified(f"https://127.0.0.1:{port}/healthz").status_code == 200

        self._programs.until(f"{name} is healthy", healthy)

    def _start(self, name: str, *arguments: str) -> None:
        self._programs.start(name, [str(self._peers / name), *arguments])

    def _pki_file(self, name: str) -> Path:
        return self.pki.folder / name
