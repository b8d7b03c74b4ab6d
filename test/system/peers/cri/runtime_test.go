package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// node is a runtime under test, asked as the kubelet asks.
type node struct {
	*testing.T
	*runtime
	logFolder string
	output    *bytes.Buffer
}

func newNode(t *testing.T) node {
	output, logFolder := &bytes.Buffer{}, t.TempDir()
	return node{t, newRuntime(logFolder, []string{"localhost/app:1", doneImage}, output), logFolder, output}
}

func (n node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// create gives a container of the pod ml/llm-0 the CPUs 2-3 of NUMA node 1.
func (n node) create(image string) string {
	n.Helper()
	answer, err := n.CreateContainer(context.Background(), &cri.CreateContainerRequest{
		PodSandboxId: "sandbox",
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "server"},
			Image:    &cri.ImageSpec{Image: image},
			Labels: map[string]string{
				"io.kubernetes.pod.namespace": "ml",
				"io.kubernetes.pod.name":      "llm-0",
				"io.kubernetes.pod.uid":       "0c1e",
			},
			Linux: &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpusetCpus: "2-3", CpusetMems: "1"}},
		},
	})
	n.must(err)
	return answer.ContainerId
}

func (n node) start(id string) {
	n.Helper()
	_, err := n.StartContainer(context.Background(), &cri.StartContainerRequest{ContainerId: id})
	n.must(err)
}

func (n node) stop(id string) {
	n.Helper()
	_, err := n.StopContainer(context.Background(), &cri.StopContainerRequest{ContainerId: id})
	n.must(err)
}

func (n node) remove(id string) {
	n.Helper()
	_, err := n.RemoveContainer(context.Background(), &cri.RemoveContainerRequest{ContainerId: id})
	n.must(err)
}

func (n node) status(id string) *cri.ContainerStatus {
	n.Helper()
	answer, err := n.ContainerStatus(context.Background(), &cri.ContainerStatusRequest{ContainerId: id})
	n.must(err)
	return answer.Status
}

func (n node) setCPUs(id, cpus string) {
	n.Helper()
	_, err := n.UpdateContainerResources(context.Background(), &cri.UpdateContainerResourcesRequest{
		ContainerId: id,
		Linux:       &cri.LinuxContainerResources{CpusetCpus: cpus},
	})
	n.must(err)
}

func TestEveryStatusTellsALogFileOfItsOwnInTheLogFolder(t *testing.T) {
	n := newNode(t)
	first, second := n.create("localhost/app:1"), n.create(doneImage)
	check := func(when string) {
		paths := map[string]bool{}
		for _, id := range []string{first, second} {
			path := n.status(id).LogPath
			if filepath.Dir(path) != n.logFolder {
				t.Errorf("%s: log path %q is not a file in %s", when, path, n.logFolder)
			}
			// What the kubelet removes with the container.
			if files, err := filepath.Glob(path + "*"); err != nil || len(files) != 1 || files[0] != path {
				t.Errorf("%s: %s* finds %v, error %v", when, path, files, err)
			}
			paths[path] = true
		}
		if len(paths) != 2 {
			t.Errorf("%s: two containers share a log file: %v", when, paths)
		}
	}
	check("created")
	n.start(first)
	n.start(second)
	check("started")
	n.stop(first)
	n.stop(second)
	check("stopped")
}

func TestAContainerThatIsGoneHasNoStatus(t *testing.T) {
	n := newNode(t)
	id := n.create("localhost/app:1")
	n.remove(id)
	for _, unknown := range []string{id, "", "never-was"} {
		answer, err := n.ContainerStatus(context.Background(), &cri.ContainerStatusRequest{ContainerId: unknown})
		if err == nil {
			t.Errorf("container %q: %v", unknown, answer)
		}
	}
}

func TestAContainerIsNotCreatedWithoutALogFile(t *testing.T) {
	n := newNode(t)
	if err := os.Remove(n.logFolder); err != nil {
		t.Fatal(err)
	}
	if _, err := n.CreateContainer(context.Background(), &cri.CreateContainerRequest{}); err == nil {
		t.Error("it was created")
	}
}

func TestALogFolderThatIsNoPlainAbsolutePathIsRefused(t *testing.T) {
	for _, folder := range []string{"", ".", "logs", t.TempDir() + "/*", t.TempDir() + "/[a]"} {
		if err := makeLogFolder(folder); err == nil {
			t.Errorf("%q was taken", folder)
		}
	}
}

func TestAContainerMadeAnewHasAnotherID(t *testing.T) {
	n := newNode(t)
	id := n.create("localhost/app:1")
	n.remove(id)
	if n.create("localhost/app:1") == id {
		t.Errorf("both are %s", id)
	}
}

func TestAppRunsUntilItIsStopped(t *testing.T) {
	n := newNode(t)
	id := n.create("localhost/app:1")
	n.start(id)
	if got := n.status(id); got.State != cri.ContainerState_CONTAINER_RUNNING || got.StartedAt == 0 {
		t.Errorf("after the start: %v", got)
	}
	n.stop(id)
	if got := n.status(id); got.State != cri.ContainerState_CONTAINER_EXITED || got.ExitCode != 0 || got.FinishedAt < got.StartedAt {
		t.Errorf("after the stop: %v", got)
	}
}

func TestDoneEndsWhenItIsStarted(t *testing.T) {
	n := newNode(t)
	id := n.create(doneImage)
	n.start(id)
	got := n.status(id)
	if got.State != cri.ContainerState_CONTAINER_EXITED || got.ExitCode != 0 || got.Reason != "Completed" {
		t.Errorf("after the start: %v", got)
	}
	finished := got.FinishedAt
	n.stop(id)
	if n.status(id).FinishedAt != finished {
		t.Error("a stop changed when it ended")
	}
}

func TestAnUpdateChangesWhatItNamesAndTheStatusTells(t *testing.T) {
	n := newNode(t)
	id := n.create("localhost/app:1")
	n.setCPUs(id, "6-7")
	got := n.status(id).Resources.Linux
	if got.CpusetCpus != "6-7" || got.CpusetMems != "1" {
		t.Errorf("cpus %q, mems %q", got.CpusetCpus, got.CpusetMems)
	}
}

func TestEachChangeOfAContainerIsALine(t *testing.T) {
	n := newNode(t)
	id := n.create("localhost/app:1")
	n.start(id)
	n.setCPUs(id, "6-7")
	n.remove(id)
	n.remove(id) // a second time: nothing is left to tell

	lines := strings.Split(strings.TrimSpace(n.output.String()), "\n")
	pod := event{Namespace: "ml", Pod: "llm-0", UID: "0c1e", Container: "server", ID: id, Mems: "1"}
	want := []event{pod, pod, pod}
	want[0].Op, want[0].CPUs = "create", "2-3"
	want[1].Op, want[1].CPUs = "update", "6-7"
	want[2].Op, want[2].CPUs = "remove", "6-7"
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %s", len(lines), n.output)
	}
	for i := range want {
		var got event
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got != want[i] {
			t.Errorf("line %d: %s\nwant %+v, error %v", i+1, lines[i], want[i], err)
		}
	}
}
