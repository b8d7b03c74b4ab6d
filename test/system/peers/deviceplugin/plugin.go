package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A registration takes the kubelet milliseconds.
const patience = 5 * time.Second

// plugin offers the devices of one resource. One goroutine reads the file and registers; gRPC's goroutines
// answer the kubelet.
type plugin struct {
	dp.UnimplementedDevicePluginServer
	resource string
	folder   string // of the sockets, the kubelet's and ours
	text     string // of the file, as it was last understood
	devices  watched
	server   *grpc.Server
	kubelet  os.FileInfo // the socket of the kubelet that knows us; nil: none does
}

func newPlugin(resource, folder string) *plugin {
	return &plugin{
		resource: resource,
		folder:   folder,
		devices:  watched{changed: make(chan struct{})},
		server:   grpc.NewServer(),
	}
}

// read takes the devices over from the file. One that is gone or damaged leaves them as they are: it does not
// say that there are none.
func (p *plugin) read(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(content) == p.text {
		return nil
	}
	devices, err := parseDevices(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	p.text = string(content)
	p.devices.set(devices)
	return nil
}

// keepRegistered registers with a kubelet that does not know us yet. A kubelet that starts removes all sockets
// in the folder, then makes its own; so a new one there is a new kubelet, and ours is gone.
func (p *plugin) keepRegistered() error {
	socket := filepath.Join(p.folder, filepath.Base(dp.KubeletSocket))
	kubelet, err := os.Stat(socket)
	if err != nil {
		return err
	}
	if p.kubelet != nil && sameSocket(kubelet, p.kubelet) {
		return nil
	}
	endpoint := "fake-" + strings.ReplaceAll(p.resource, "/", "_") + ".sock"
	if err := p.serve(filepath.Join(p.folder, endpoint)); err != nil {
		return err
	}
	if err := p.register(socket, endpoint); err != nil {
		return fmt.Errorf("registering %s at %s: %w", p.resource, socket, err)
	}
	p.kubelet = kubelet
	fmt.Println("registered", p.resource)
	return nil
}

// A new file may have the inode of a removed one, but not its time.
func sameSocket(a, b os.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

func (p *plugin) serve(socket string) error {
	p.server.Stop()
	if err := os.RemoveAll(socket); err != nil { // a killed predecessor's
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	dp.RegisterDevicePluginServer(p.server, p)
	go p.server.Serve(listener) // until Stop
	return nil
}

func (p *plugin) register(kubelet, endpoint string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = dp.NewRegistrationClient(connection).Register(ctx, &dp.RegisterRequest{
		Version:      dp.Version,
		Endpoint:     endpoint,
		ResourceName: p.resource,
		Options:      &dp.DevicePluginOptions{},
	})
	return err
}

func (p *plugin) GetDevicePluginOptions(context.Context, *dp.Empty) (*dp.DevicePluginOptions, error) {
	return &dp.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *dp.Empty, stream dp.DevicePlugin_ListAndWatchServer) error {
	for {
		devices, changed := p.devices.get()
		if err := stream.Send(&dp.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) Allocate(_ context.Context, request *dp.AllocateRequest) (*dp.AllocateResponse, error) {
	answer := &dp.AllocateResponse{}
	for _, container := range request.GetContainerRequests() {
		ids := strings.Join(container.GetDevicesIds(), ",")
		fmt.Println("allocated", ids)
		answer.ContainerResponses = append(answer.ContainerResponses, &dp.ContainerAllocateResponse{
			Envs: map[string]string{"FAKE_VISIBLE_DEVICES": ids},
		})
	}
	return answer, nil
}

// watched is a list of devices whose next change can be waited for. Safe for use by many goroutines.
type watched struct {
	mutex   sync.Mutex
	devices []*dp.Device
	changed chan struct{} // closed by the next change
}

func (w *watched) get() ([]*dp.Device, <-chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.devices, w.changed
}

func (w *watched) set(devices []*dp.Device) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.devices = devices
	close(w.changed)
	w.changed = make(chan struct{})
}
