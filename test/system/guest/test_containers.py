"""On an emulated machine with two NUMA nodes a real kubelet starts real containers, and the agent says where they
sit. Its word must be that of the kubelet and of the kernel: while all is well, after somebody rewrote cgroups, when a
pod has gone, and when another took its place."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from guest.report import Allowed, Moment, section
from harness import cpus, truth
from harness.cluster import peers_folder

HERE = Path(__file__).resolve().parent
GPU = "example.com/gpu"
MOMENTS = ["running", "drifted", "deleted", "replaced"]
# While the kubelet's state files have no entries of pods that are gone.
WITHOUT_DEAD_PODS = ["running", "drifted", "replaced"]


def run(*command: str | Path) -> str:
    """Nothing else can be tested without it: 77, by which ctest knows what cannot run here, is passed on, too."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        pytest.exit(f"{command[0]}: status {done.returncode}\n{done.stdout}", returncode=done.returncode)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def report() -> Path:
    """The folder of what the guest reported. It is booted once for all tests."""
    folder = Path(os.environ["SYSTEM_FOLDER"])
    disk = run(HERE / "root_image.sh", peers_folder())
    script = HERE / "inside" / "containers.sh"
    run(HERE / "boot.sh", "--disk", disk, folder, script, os.environ["PLUMBLINE_AGENT"])
    if (never := folder / "never.txt").exists():
        log = (folder / "kubelet.txt").read_text().splitlines()
        pytest.exit(
            "\n".join([f"not in the guest: {never.read_text()}The kubelet said:", *log[-10:]]), returncode=1
        )
    return folder


@pytest.fixture
def running(report: Path) -> Moment:
    """All is well."""
    return Moment(report, "running")


@pytest.fixture
def drifted(report: Path) -> Moment:
    """CPU 1 was written into second-gpu's cgroup, NUMA node 1 into huge's."""
    return Moment(report, "drifted")


@pytest.fixture
def deleted(report: Path) -> Moment:
    """The file of first-gpu was removed, and its containers have gone."""
    return Moment(report, "deleted")


@pytest.fixture
def replaced(report: Path) -> Moment:
    """third-gpu runs instead."""
    return Moment(report, "replaced")


@pytest.fixture(params=MOMENTS)
def moment(report: Path, request: pytest.FixtureRequest) -> Moment:
    return Moment(report, request.param)


@pytest.fixture(params=WITHOUT_DEAD_PODS)
def clean_moment(report: Path, request: pytest.FixtureRequest) -> Moment:
    return Moment(report, request.param)


# What there is


def test_the_kubelet_runs_four_pods_and_refuses_the_one_that_no_numa_node_can_hold(running: Moment) -> None:
    statuses = {name: pod["status"] for name, pod in running.kubelets_pods().items()}
    assert {name: (status["phase"], status.get("reason")) for name, status in statuses.items()} == {
        "first-gpu-guest": ("Running", None),
        "second-gpu-guest": ("Running", None),
        "huge-guest": ("Running", None),
        "shared-guest": ("Running", None),
        "too-big-guest": ("Failed", "TopologyAffinityError"),
    }


def test_the_kubelet_put_pods_on_both_numa_nodes(running: Moment) -> None:
    assert {name: held["CPUs"] for name, held in running.listed().items()} == {
        "first-gpu-guest": "2-3",
        "second-gpu-guest": "6-7",
        "huge-guest": "1",
    }


def test_the_agent_finds_the_kubelets_configuration_by_itself(running: Moment) -> None:
    kubelet = running.placement()["kubelet"]
    assert kubelet["configSource"] == "file"
    assert kubelet["topologyManager"] == {"policy": "single-numa-node", "scope": "pod", "options": {}}
    assert kubelet["cpuManager"] == {"policy": "static", "options": {}, "reservedCPUs": "0,4"}
    assert kubelet["memoryManager"] == {
        "policy": "Static",
        "reserved": [{"numaNode": node, "type": "memory", "size": "128Mi"} for node in (0, 1)],
    }


def test_nothing_is_wrong_or_unknown(running: Moment) -> None:
    conditions = {condition["type"]: condition["status"] for condition in running.placement()["conditions"]}
    assert "KernelAgrees" in conditions
    assert conditions == dict.fromkeys(conditions, "True")


# Pods


def test_pods_hold_what_podresources_lists(moment: Moment) -> None:
    assert moment.held() == moment.listed()


def test_pods_hold_the_cpus_of_the_state_file(clean_moment: Moment) -> None:
    held = clean_moment.held()
    state = clean_moment.state_file("cpu_manager_state")["entries"]
    assert {pod["kubeletUID"]: held[name]["CPUs"] for name, pod in clean_moment.pods().items()} == {
        uid: containers["app"] for uid, containers in state.items()
    }


def test_pods_hold_the_memory_of_the_state_file(clean_moment: Moment) -> None:
    held = clean_moment.held()
    state = clean_moment.state_file("memory_manager_state")["entries"]
    assert {pod["kubeletUID"]: held[name]["memory"] for name, pod in clean_moment.pods().items()} == {
        uid: sorted((block["type"], block["size"], block["numaAffinity"]) for block in containers["app"])
        for uid, containers in state.items()
    }


def test_pods_have_the_uids_by_which_the_kubelet_knows_them(moment: Moment) -> None:
    kubelets = moment.kubelets_pods()
    for name, pod in moment.pods().items():
        assert pod["kubeletUID"] == kubelets[name]["metadata"]["uid"]


def test_pods_are_aligned_on_the_node_of_their_gpu_or_huge_pages(running: Moment) -> None:
    said = {name: (pod["alignment"], pod["reason"], pod["numaNodes"]) for name, pod in running.pods().items()}
    assert said == {
        "first-gpu-guest": ("Aligned", "AllOnOneNUMANode", [0]),
        "second-gpu-guest": ("Aligned", "AllOnOneNUMANode", [1]),
        "huge-guest": ("Aligned", "AllOnOneNUMANode", [0]),
    }


def test_the_picture_shows_each_pod_in_the_box_of_its_numa_node(report: Path) -> None:
    box = "none"
    shown = {}
    for line in section(report, "picture").splitlines():
        if start := re.match(r"\+- NUMA node (\d+) ", line):
            box = start[1]
        elif pod := re.match(r"\| default/(\S+) +aligned +\d CPUs? (\S+) ", line):
            shown[pod[1]] = (box, pod[2])
    assert shown == {
        "first-gpu-guest": ("0", "2-3"),
        "huge-guest": ("0", "1"),
        "second-gpu-guest": ("1", "6-7"),
    }


# What is free


def test_free_cpus_are_those_that_the_kubelet_can_hand_out_and_nobody_holds(
    report: Path, moment: Moment
) -> None:
    allocatable = set(map(int, json.loads(section(report, "allocatable"))["cpuIds"]))
    held = set().union(*(cpus.parse(pod["CPUs"]) for pod in moment.listed().values()))
    for node in moment.numa_nodes().values():
        assert cpus.parse(node["freeCPUs"]) == (allocatable - held) & cpus.parse(node["cpus"])


def test_free_cpus_are_the_shared_pool_of_the_state_file_without_the_reserved(clean_moment: Moment) -> None:
    free = set().union(*(cpus.parse(node["freeCPUs"]) for node in clean_moment.numa_nodes().values()))
    reserved = cpus.parse(clean_moment.placement()["kubelet"]["cpuManager"]["reservedCPUs"])
    assert free == cpus.parse(clean_moment.state_file("cpu_manager_state")["defaultCpuSet"]) - reserved


def test_memory_is_that_of_the_state_file(clean_moment: Moment) -> None:
    state = clean_moment.state_file("memory_manager_state")["machineState"]
    assert {
        str(id): (
            node["memoryGroup"],
            node["memoryAssignments"],
            truth.published_memory_tables(node),
        )
        for id, node in clean_moment.numa_nodes().items()
    } == {
        id: (
            node["cells"],
            node["numberOfAssignments"],
            truth.memory_tables(node),
        )
        for id, node in state.items()
    }


def test_zones_have_available_what_is_free(moment: Moment) -> None:
    taken = {device for pod in moment.listed().values() for device in pod["devices"]}
    free_gpus = [gpu for gpu in moment.placement()["devices"] if (GPU, gpu["id"]) not in taken]
    nodes = moment.numa_nodes()
    for zone in moment.published("NodeResourceTopology")["zones"]:
        node = nodes[int(zone["name"].removeprefix("node-"))]
        assert {resource["name"]: resource["available"] for resource in zone["resources"]} == {
            "cpu": len(cpus.parse(node["freeCPUs"])),
            GPU: sum(node["id"] in gpu["numaNodes"] for gpu in free_gpus),
            **{
                table["type"]: truth.bytes_of(table["free"])
                for table in node["memory"]
                if table["capacity"] != "0"
            },
        }


# Devices


def test_devices_are_the_machines_gpus_where_they_are_plugged(moment: Moment) -> None:
    facts = run("bash", "-c", f"source {HERE}/machine.sh && guest_expected_facts")
    plugged = re.findall(r"^device (\S+) gpu node (\d)$", facts, re.M)
    assert moment.placement()["devices"] == [
        {
            "resource": GPU,
            "id": address,
            "numaNodes": [int(node)],
            "healthy": True,
            "pciAddress": address,
            "pciNumaNode": int(node),
        }
        for address, node in sorted(plugged)
    ]


# The kernel


def test_containers_run_where_their_cgroups_say(moment: Moment) -> None:
    kernel = moment.allowed_by_cgroups()
    assert moment.allowed() == {name: kernel[name] for name in moment.pods()}


def test_containers_run_where_their_processes_are_allowed(moment: Moment) -> None:
    kernel = moment.allowed_by_processes()
    assert moment.allowed() == {name: kernel[name] for name in moment.pods()}


def own_words(report: Path) -> dict[str, Allowed]:
    """What each container's first process read of itself, by its log."""
    line = r"/default_([^_]+)_\S+ stdout F (Cpus|Mems)_allowed_list:\s+(\S+)"
    said = {(pod, field): value for pod, field, value in re.findall(line, section(report, "words"))}
    return {pod: Allowed(said[pod, "Cpus"], said[pod, "Mems"]) for pod, _ in said}


def test_containers_say_the_same_of_themselves(report: Path, running: Moment) -> None:
    words = own_words(report)
    assert running.allowed() == {name: words[name] for name in running.pods()}


def test_the_burstable_pod_runs_on_the_shared_pool_and_holds_nothing(report: Path, running: Moment) -> None:
    pool = running.state_file("cpu_manager_state")["defaultCpuSet"]
    assert running.allowed_by_cgroups()["shared-guest"].cpus == pool
    assert own_words(report)["shared-guest"].cpus == pool
    assert "shared-guest" not in running.pods()


# Somebody rewrote cgroups


def test_pods_drift_when_their_cgroups_are_rewritten(drifted: Moment) -> None:
    pods = drifted.pods()
    assert pods["first-gpu-guest"]["alignment"] == "Aligned"
    cpus_differ, memory_differs = pods["second-gpu-guest"], pods["huge-guest"]
    assert (cpus_differ["alignment"], cpus_differ["reason"]) == ("Drifted", "CPUsDiffer")
    assert "gave container app CPUs 6-7, but the kernel runs it on 1." in cpus_differ["message"]
    assert (memory_differs["alignment"], memory_differs["reason"]) == ("Drifted", "MemoryNodesDiffer")
    assert "memory on NUMA node 0, but the kernel lets it use NUMA node 1." in memory_differs["message"]
    assert drifted.condition("KernelAgrees") == ("False", "Drifted")


def test_pods_stay_drifted_while_others_come_and_go(
    drifted: Moment, deleted: Moment, replaced: Moment
) -> None:
    for name in ("second-gpu-guest", "huge-guest"):
        said = drifted.pods()[name]["message"]
        assert [later.pods()[name]["message"] for later in (deleted, replaced)] == [said, said]


def test_a_drift_changes_nothing_of_what_is_held_and_free(running: Moment, drifted: Moment) -> None:
    assert drifted.held() == running.held()
    assert drifted.numa_nodes() == running.numa_nodes()


# A pod goes, another comes


def test_the_state_files_still_list_a_deleted_pod(running: Moment, deleted: Moment) -> None:
    uid = running.pods()["first-gpu-guest"]["kubeletUID"]
    assert uid in deleted.state_file("cpu_manager_state")["entries"]
    assert uid in deleted.state_file("memory_manager_state")["entries"]


def test_what_a_deleted_pod_held_is_free_all_the_same(running: Moment, deleted: Moment) -> None:
    assert "first-gpu-guest" not in deleted.pods()
    gone = running.held()["first-gpu-guest"]
    before, after = running.numa_nodes(), deleted.numa_nodes()
    assert cpus.parse(after[0]["freeCPUs"]) == cpus.parse(before[0]["freeCPUs"]) | cpus.parse(gone["CPUs"])
    ((type, size, _),) = gone["memory"]
    free = {table["type"]: truth.bytes_of(table["free"]) for table in before[0]["memory"]}
    free[type] += size
    assert {table["type"]: truth.bytes_of(table["free"]) for table in after[0]["memory"]} == free
    assert after[0]["memoryAssignments"] == before[0]["memoryAssignments"] - 1
    assert after[0]["memoryGroup"] == before[0]["memoryGroup"]
    assert after[1] == before[1]


def test_the_next_pod_gets_what_was_free(running: Moment, replaced: Moment) -> None:
    assert replaced.listed()["third-gpu-guest"] == running.held()["first-gpu-guest"]
    assert replaced.pods()["third-gpu-guest"]["alignment"] == "Aligned"
    assert replaced.numa_nodes() == running.numa_nodes()
