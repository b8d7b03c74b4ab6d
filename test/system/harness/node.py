"""A node: a made-up machine with a real kubelet, a runtime that starts nothing, and device plugins."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from . import cpus
from .api import Object, get_unverified
from .control_plane import ControlPlane
from .machine import Machine
from .process import Failed, Programs

KUBELET_PORT = 10250
IMAGES = ["localhost/app:1", "localhost/done:1", "localhost/pause:1"]
RESERVED_MIB = 256  # of each NUMA node with memory, for the system; 100 MiB of the sum is for eviction


@dataclass(frozen=True)
class NodeSpec:
    """A node to bring up: its machine and how its kubelet is set."""

    name: str
    machine: Machine
    policy: str = "single-numa-node"
    scope: str = "pod"
    topology_options: dict[str, str] = field(default_factory=dict)
    cpu_policy: str = "static"
    cpu_options: dict[str, str] = field(default_factory=dict)
    memory_policy: str = "Static"
    feature_gates: dict[str, bool] = field(default_factory=dict)
    signed_certificate: bool = False  # else the kubelet signs its own, as by default
    disk_mib: int | None = None  # of a disk of its own for the kubelet's folder; it may be full


class Node:
    def __init__(
        self, spec: NodeSpec, address: str, programs: Programs, peers: Path, control_plane: ControlPlane
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.machine = spec.machine
        self.address = address
        self.tree = programs.folder / "nodes" / spec.name
        self._programs = programs
        self._peers = peers
        self._control_plane = control_plane

    # Bringing up

    def start(self) -> None:
        """Returns when its kubelet has sockets and all its devices; see Cluster for when it is Ready."""
        subprocess.run(["ip", "address", "add", f"{self.address}/32", "dev", "lo"], check=True)
        self.machine.write(self.tree)
        self._make_disk()
        for folder in (
            "var/lib/kubelet/pki",
            "var/lib/kubelet/manifests",
            "var/log/pods",
            "var/log/containers",
            "run/containerd/logs",
        ):
            (self.tree / folder).mkdir(parents=True)
        self._write_identity()
        self._write_kubelet_configuration()
        self._start_namespaces()
        self._start_inside(
            "cri",
            str(self._peers / "cri"),
            "/run/containerd/containerd.sock",
            "/run/containerd/logs",
            *IMAGES,
        )
        self.start_kubelet()
        for resource in self.machine.device_plugins():
            self.start_device_plugin(resource)

    def stop(self) -> None:
        """All of it, for good. Its Node object stays."""
        self._programs.kill_all(f"{self.name}-")
        subprocess.run(["ip", "address", "delete", f"{self.address}/32", "dev", "lo"], check=True)

    def start_kubelet(self) -> None:
        for socket in self._sockets():
            socket.unlink(missing_ok=True)  # a dead kubelet's would be taken for this one's
        self._start_inside(
            "kubelet",
            str(self._peers / "kubelet"),
            "--config=/var/lib/kubelet/config.yaml",
            "--kubeconfig=/var/lib/kubelet/kubeconfig",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
        )
        self._programs.until(f"{self.name}: the kubelet has its sockets", self._has_sockets)

    def stop_kubelet(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Its sockets stay behind."""
        self._programs.stop(f"{self.name}-kubelet", how)

    @property
    def kubelet_pid(self) -> int:
        return self._programs.pid(f"{self.name}-kubelet")

    def start_device_plugin(self, resource: str) -> None:
        name = resource.replace("/", "_")
        self.write_devices(resource)
        self._start_inside(
            f"plugin-{name}", str(self._peers / "deviceplugin"), resource, f"/var/lib/kubelet/{name}.devices"
        )

    def write_devices(self, resource: str, unhealthy: Container[str] = ()) -> None:
        """What the resource's plugin advertises from now on."""
        lines = []
        for id, numa_node in self.machine.device_plugins()[resource]:
            words = [id, "" if numa_node is None else str(numa_node), "unhealthy" if id in unhealthy else ""]
            lines.append(" ".join(filter(None, words)))
        file = self.tree / "var/lib/kubelet" / f"{resource.replace('/', '_')}.devices"
        part = file.with_suffix(".part")
        part.write_text("\n".join(lines) + "\n")
        part.rename(file)

    def start_dra_driver(self, name: str) -> None:
        """It serves claims that write_claims gives devices; who calls publishes its ResourceSlices."""
        self.write_claims(name, {})
        self._start_inside(
            f"driver-{name}", str(self._peers / "dradriver"), name, f"/var/lib/kubelet/{name}.claims"
        )
        log = self._programs.logs / f"{self.name}-driver-{name}.log"
        self._programs.until(
            f"{self.name}: the kubelet has found {name}", lambda: f"registered {name}" in log.read_text()
        )

    def stop_dra_driver(self, name: str) -> None:
        self._programs.stop(f"{self.name}-driver-{name}")

    def write_claims(self, driver: str, claims: dict[str, list[tuple[str, str]]]) -> None:
        """Pools and names of devices, by the claims NAMESPACE/NAME that have them from now on."""
        lines = [
            f"{claim} {pool} {device}\n" for claim, devices in claims.items() for pool, device in devices
        ]
        file = self.tree / "var/lib/kubelet" / f"{driver}.claims"
        part = file.with_suffix(".part")
        part.write_text("".join(lines))
        part.rename(file)

    # Its disk

    def _make_disk(self) -> None:
        if self.spec.disk_mib:
            folder = self.tree / "var/lib/kubelet"
            folder.mkdir(parents=True)
            options = ["-o", f"size={self.spec.disk_mib}m"]
            subprocess.run(["mount", "-t", "tmpfs", *options, "kubelet", str(folder)], check=True)

    def fill_disk(self) -> None:
        if not self.spec.disk_mib:
            raise Failed(f"{self.name}: the disk is the host's, and is not to be filled")
        with suppress(OSError), self._filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))
                file.flush()

    def empty_disk(self) -> None:
        self._filler.unlink()

    def let_write(self, allowed: bool) -> None:
        """Whether the kubelet's folder is read-only for the node, as after an error of the disk."""
        self.run("mount", "-o", f"remount,bind,{'rw' if allowed else 'ro'}", "/var/lib/kubelet")

    @property
    def _filler(self) -> Path:
        return self.tree / "var/lib/kubelet/filler"

    # Sockets and namespaces

    def _sockets(self) -> list[Path]:
        kubelet = self.tree / "var/lib/kubelet"
        return [kubelet / "device-plugins/kubelet.sock", kubelet / "pod-resources/kubelet.sock"]

    def _has_sockets(self) -> bool:
        return all(socket.is_socket() for socket in self._sockets())

    def _start_namespaces(self) -> None:
        self._init = self._programs.start(
            f"{self.name}-init",
            ["unshare", "--mount", "--propagation", "private", "--pid", "--uts", "--fork", "--kill-child"]
            + [str(Path(__file__).with_name("node_init.sh")), str(self.tree), self.name],
        )
        self._programs.until(
            f"{self.name}: the machine is in place", lambda: "ready" in self._init.log.read_text()
        )

    def inside(self, *command: str, folder: Path | None = None) -> list[str]:
        """The command as it has to be run to see the node as its machine."""
        # Without --wd it would be started in "/": the working directory is one of another mount namespace.
        working_directory = [f"--wd={folder}"] if folder else []
        namespaces = ["--mount", "--pid", "--uts"]
        return ["nsenter", f"--target={self._init.pid}", *namespaces, *working_directory, "--", *command]

    def _start_inside(self, name: str, *command: str) -> None:
        folder = self._programs.folder / "empty" / f"{self.name}-{name}"
        self._programs.start(f"{self.name}-{name}", self.inside(*command, folder=folder))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command on the node to its end."""
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise Failed(f"{self.name}: {' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return done

    # Configuration

    def _write_identity(self) -> None:
        pki, kubelet = self._control_plane.pki, self.tree / "var/lib/kubelet"
        pki.client(f"kubelet-{self.name}", f"system:node:{self.name}", "system:nodes")
        kubeconfig = self._control_plane.write_kubeconfig(f"kubelet-{self.name}")
        (kubelet / "kubeconfig").write_bytes(kubeconfig.read_bytes())
        if self.spec.signed_certificate:
            pki.server(f"serving-{self.name}", [self.name, self.address])
            for end in ("crt", "key"):
                (kubelet / f"pki/serving.{end}").write_bytes(
                    (pki.folder / f"serving-{self.name}.{end}").read_bytes()
                )

    def kubelet_configuration(self) -> Object:
        spec, machine = self.spec, self.machine
        with_memory = [node.id for node in machine.numa_nodes if node.memory_mib]
        configuration: Object = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "port": KUBELET_PORT,
            "healthzBindAddress": self.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._control_plane.pki.ca)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "staticPodPath": "/var/lib/kubelet/manifests",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "fileCheckFrequency": "1s",
            "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "2s",
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            "registerWithTaints": [],
            "featureGates": spec.feature_gates,
            "topologyManagerPolicy": spec.policy,
            "topologyManagerScope": spec.scope,
            "topologyManagerPolicyOptions": spec.topology_options,
            "cpuManagerPolicy": spec.cpu_policy,
            "cpuManagerPolicyOptions": spec.cpu_options,
            "memoryManagerPolicy": spec.memory_policy,
            "systemReserved": {"memory": f"{RESERVED_MIB * len(with_memory) - 100}Mi"},
            "evictionHard": {
                "memory.available": "100Mi",
                # 0 %: never. Pods stay where they are, also on a disk that is full.
                "nodefs.available": "0%" if spec.disk_mib else "1%",
                "nodefs.inodesFree": "0%" if spec.disk_mib else "1%",
                "imagefs.available": "1%",
            },
            "reservedSystemCPUs": cpus.render(machine.siblings_of(0)),
            "logging": {"verbosity": 3},
        }
        if spec.memory_policy == "Static":
            configuration["reservedMemory"] = [
                {"numaNode": node, "limits": {"memory": f"{RESERVED_MIB}Mi"}} for node in with_memory
            ]
        if spec.signed_certificate:
            configuration["tlsCertFile"] = "/var/lib/kubelet/pki/serving.crt"
            configuration["tlsPrivateKeyFile"] = "/var/lib/kubelet/pki/serving.key"
        return configuration

    def _write_kubelet_configuration(self) -> None:
        text = yaml.safe_dump(self.kubelet_configuration(), sort_keys=False)
        (self.tree / "var/lib/kubelet/config.yaml").write_text(text)

    # What the kubelet says and keeps

    def podresources(self, *question: str) -> Object:
        """`list`, `allocatable` or `get NAMESPACE NAME`, asked by Kubernetes' own client."""
        socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
        answer: Object = json.loads(self.run(str(self._peers / "podresources"), socket, *question).stdout)
        return answer

    def state_file(self, name: str) -> Object:
        """cpu_manager_state or memory_manager_state; an older or newer writing, never half of one: the
        kubelet renames it into place."""
        state: Object = json.loads((self.tree / "var/lib/kubelet" / name).read_text())
        return state

    def pods(self) -> list[Object]:
        """All pods that the kubelet knows, with the status it has for them."""
        pki = self._control_plane.pki.folder
        administrator = (str(pki / "admin.crt"), str(pki / "admin.key"))
        answer = get_unverified(f"https://{self.address}:{KUBELET_PORT}/pods", cert=administrator)
        if answer.status_code != 200:
            raise Failed(f"{self.name}: /pods: {answer.status_code} {answer.text}")
        items: list[Object] = answer.json()["items"] or []
        return items
