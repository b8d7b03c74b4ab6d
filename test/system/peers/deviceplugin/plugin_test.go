package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// kubelet takes registrations and keeps what the plugins tell.
type kubelet struct {
	dp.UnimplementedRegistrationServer
	*testing.T
	folder        string
	registrations atomic.Int32
	told          chan string // each list of devices
	server        *grpc.Server
}

// startKubelet does what a starting kubelet does to the folder.
func startKubelet(t *testing.T, folder string) *kubelet {
	t.Helper()
	sockets, err := filepath.Glob(folder + "/*.sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, socket := range sockets {
		os.Remove(socket)
	}
	listener, err := net.Listen("unix", folder+"/kubelet.sock")
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{T: t, folder: folder, told: make(chan string, 10), server: grpc.NewServer()}
	dp.RegisterRegistrationServer(k.server, k)
	go k.server.Serve(listener)
	t.Cleanup(k.server.Stop)
	return k
}

func (k *kubelet) Register(_ context.Context, request *dp.RegisterRequest) (*dp.Empty, error) {
	k.registrations.Add(1)
	go k.listen(filepath.Join(k.folder, request.Endpoint))
	return &dp.Empty{}, nil
}

func (k *kubelet) listen(socket string) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.Error(err)
		return
	}
	defer connection.Close()
	stream, err := dp.NewDevicePluginClient(connection).ListAndWatch(context.Background(), &dp.Empty{})
	for err == nil {
		var list *dp.ListAndWatchResponse
		if list, err = stream.Recv(); err == nil {
			k.told <- text(list.Devices)
		}
	}
}

func (k *kubelet) expect(want string) {
	k.Helper()
	select {
	case got := <-k.told:
		if got != want {
			k.Errorf("the kubelet was told %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		k.Errorf("the kubelet was told nothing, want %q", want)
	}
}

// A socket's path has at most 107 characters; t.TempDir's may be longer.
func folder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "deviceplugin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// list makes the plugin read a file with this text.
func list(t *testing.T, p *plugin, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "devices")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p.read(file)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheKubeletIsToldTheDevicesAndEachChange(t *testing.T) {
	folder := folder(t)
	k, p := startKubelet(t, folder), newPlugin("example.com/gpu", folder)
	must(t, list(t, p, "gpu0 0\n"))
	must(t, p.keepRegistered())
	k.expect("gpu0 on 0 Healthy")
	must(t, list(t, p, "gpu0 0 unhealthy\n"))
	k.expect("gpu0 on 0 Unhealthy")
	must(t, list(t, p, ""))
	k.expect("")
}

func TestANewKubeletIsRegisteredWithAndAKnownOneIsNot(t *testing.T) {
	folder := folder(t)
	first, p := startKubelet(t, folder), newPlugin("example.com/gpu", folder)
	must(t, list(t, p, "gpu0 0\n"))
	must(t, p.keepRegistered())
	must(t, p.keepRegistered())
	first.expect("gpu0 on 0 Healthy")

	first.server.Stop()
	if err := p.keepRegistered(); err == nil {
		t.Error("registered without a kubelet")
	}
	second := startKubelet(t, folder)
	must(t, p.keepRegistered())
	second.expect("gpu0 on 0 Healthy")
	for _, k := range []*kubelet{first, second} {
		if n := k.registrations.Load(); n != 1 {
			t.Errorf("registered %d times at one kubelet", n)
		}
	}
}

func TestAFileThatIsGoneOrDamagedLeavesTheDevicesAsTheyAre(t *testing.T) {
	p := newPlugin("example.com/gpu", folder(t))
	must(t, list(t, p, "gpu0 0\n"))
	if err := list(t, p, "gpu0 zero\n"); err == nil {
		t.Error("a damaged file was read")
	}
	if err := p.read(filepath.Join(p.folder, "gone")); err == nil {
		t.Error("a file that is gone was read")
	}
	devices, _ := p.devices.get()
	if got := text(devices); got != "gpu0 on 0 Healthy" {
		t.Errorf("devices are %q", got)
	}
}

func TestAContainerFindsItsDevicesInItsEnvironment(t *testing.T) {
	p := newPlugin("example.com/gpu", folder(t))
	answer, err := p.Allocate(context.Background(), &dp.AllocateRequest{ContainerRequests: []*dp.ContainerAllocateRequest{
		{DevicesIds: []string{"gpu0", "gpu1"}}, {DevicesIds: []string{"gpu2"}},
	}})
	must(t, err)
	for i, want := range []string{"gpu0,gpu1", "gpu2"} {
		if got := answer.ContainerResponses[i].Envs["FAKE_VISIBLE_DEVICES"]; got != want {
			t.Errorf("container %d: %q, want %q", i, got, want)
		}
	}
}
