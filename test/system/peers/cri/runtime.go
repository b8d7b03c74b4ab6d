package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"
)

// The image whose containers end as soon as they are started.
const doneImage = "localhost/done:1"

// runtime is Kubernetes' own fake runtime with containers that are told apart, end, keep what they were given
// and have a log. Sandboxes, images and all lists are the fake's.
type runtime struct {
	*fake.RemoteRuntime
	logFolder string
	events    *json.Encoder // used under the lock of the containers
}

func newRuntime(logFolder string, images []string, events io.Writer) *runtime {
	r := &runtime{fake.NewFakeRemoteRuntime(), logFolder, json.NewEncoder(events)}
	r.ImageService.SetFakeImageSize(1 << 20)
	r.ImageService.SetFakeImages(images)
	r.RuntimeService.FakeStatus = &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true},
		{Type: cri.NetworkReady, Status: true},
	}}
	r.RuntimeService.FakeLinuxConfiguration = &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}
	return r
}

// An event is a line of the program's output.
type event struct {
	Op        string `json:"op"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container"`
	ID        string `json:"id"`
	CPUs      string `json:"cpus"` // as in cpuset.cpus; empty: all
	Mems      string `json:"mems"` // as in cpuset.mems; empty: all
}

// The kubelet's labels name the pod that a container belongs to.
func (r *runtime) report(op string, c *apitest.FakeContainer) error {
	resources := c.GetResources().GetLinux()
	return r.events.Encode(event{
		Op:        op,
		Namespace: c.Labels["io.kubernetes.pod.namespace"],
		Pod:       c.Labels["io.kubernetes.pod.name"],
		UID:       c.Labels["io.kubernetes.pod.uid"],
		Container: c.Metadata.GetName(),
		ID:        c.Id,
		CPUs:      resources.GetCpusetCpus(),
		Mems:      resources.GetCpusetMems(),
	})
}

// The fake's ids repeat when a static pod comes back, whose UID is a hash of its manifest.
func newID() string {
	id := make([]byte, 32)
	rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

func (r *runtime) CreateContainer(_ context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()

	config, id := req.GetConfig(), newID()
	log := filepath.Join(r.logFolder, id)
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		return nil, err
	}
	c := &apitest.FakeContainer{
		ContainerStatus: cri.ContainerStatus{
			Id:          id,
			Metadata:    config.GetMetadata(),
			State:       cri.ContainerState_CONTAINER_CREATED,
			CreatedAt:   time.Now().UnixNano(),
			Image:       config.GetImage(),
			ImageRef:    config.GetImage().GetImage(),
			ImageId:     config.GetImage().GetImage(),
			Labels:      config.GetLabels(),
			Annotations: config.GetAnnotations(),
			Mounts:      config.GetMounts(),
			LogPath:     log,
			Resources:   &cri.ContainerResources{Linux: resourcesOf(config)},
		},
		SandboxID: req.GetPodSandboxId(),
	}
	r.RuntimeService.Containers[id] = c
	return &cri.CreateContainerResponse{ContainerId: id}, r.report("create", c)
}

func resourcesOf(config *cri.ContainerConfig) *cri.LinuxContainerResources {
	if resources := config.GetLinux().GetResources(); resources != nil {
		return resources
	}
	return &cri.LinuxContainerResources{}
}

func (r *runtime) StartContainer(_ context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()

	c, ok := r.RuntimeService.Containers[req.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q to start is unknown", req.GetContainerId())
	}
	c.State = cri.ContainerState_CONTAINER_RUNNING
	c.StartedAt = time.Now().UnixNano()
	if c.GetImage().GetImage() == doneImage {
		end(c)
	}
	return &cri.StartContainerResponse{}, nil
}

// A container that ended already, or is gone, is stopped: the kubelet may ask twice.
func (r *runtime) StopContainer(_ context.Context, req *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()

	c, ok := r.RuntimeService.Containers[req.GetContainerId()]
	if ok && c.State != cri.ContainerState_CONTAINER_EXITED {
		end(c)
	}
	return &cri.StopContainerResponse{}, nil
}

// end lets a container exit with code 0.
func end(c *apitest.FakeContainer) {
	c.State = cri.ContainerState_CONTAINER_EXITED
	c.FinishedAt = time.Now().UnixNano()
	c.Reason = "Completed" // containerd's word for it
}

// The fake forgets what it is told here. What the kubelet does not name keeps its value.
func (r *runtime) UpdateContainerResources(_ context.Context, req *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()

	c, ok := r.RuntimeService.Containers[req.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q to update is unknown", req.GetContainerId())
	}
	if len(req.GetLinux().GetHugepageLimits()) > 0 {
		c.Resources.Linux.HugepageLimits = nil // Merge appends to lists
	}
	proto.Merge(c.Resources.Linux, req.GetLinux())
	return &cri.UpdateContainerResourcesResponse{}, r.report("update", c)
}

func (r *runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()

	c, ok := r.RuntimeService.Containers[req.GetContainerId()]
	if !ok {
		return &cri.RemoveContainerResponse{}, nil
	}
	delete(r.RuntimeService.Containers, c.Id)
	return &cri.RemoveContainerResponse{}, r.report("remove", c)
}
