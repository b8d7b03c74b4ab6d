// dradriver NAME FILE: a driver of dynamic resource allocation for devices that do not exist.
//
// A real driver asks the API server which devices a claim was given. This one reads FILE, one device a line:
// NAMESPACE/CLAIM POOL DEVICE. It is read at each question; a claim that is not in it is not prepared, and the
// kubelet asks again. The driver publishes nothing: its ResourceSlices are made by whoever runs it.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Where kubelets look for sockets of plugins, and where drivers put their other one.
const (
	registry = "/var/lib/kubelet/plugins_registry"
	plugins  = "/var/lib/kubelet/plugins"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: dradriver NAME FILE")
		os.Exit(2)
	}
	if err := run(&driver{name: os.Args[1], file: os.Args[2], folder: filepath.Join(plugins, os.Args[1])}); err != nil {
		fmt.Fprintln(os.Stderr, "dradriver:", err)
		os.Exit(1)
	}
}

// run serves the driver, then the socket by which a kubelet finds it, also one that is started anew.
func run(d *driver) error {
	ours, err := listen(d.socket())
	if err != nil {
		return err
	}
	finds, err := listen(filepath.Join(registry, d.name+".sock"))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	dra.RegisterDRAPluginServer(server, d)
	registrations := grpc.NewServer()
	registration.RegisterRegistrationServer(registrations, registrar{driver: d})
	failed := make(chan error)
	go func() { failed <- server.Serve(ours) }()
	go func() { failed <- registrations.Serve(finds) }()
	return <-failed
}

func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(socket); err != nil { // a killed predecessor's
		return nil, err
	}
	return net.Listen("unix", socket)
}
