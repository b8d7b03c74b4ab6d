// cri SOCKET LOG-FOLDER IMAGE...: a container runtime that starts nothing, for a real kubelet on a machine
// that does not exist.
//
// The kubelet admits pods, chooses their CPUs, memory and devices, and is told that their containers run.
// A container of the image localhost/done:1 ends well as soon as it is started; those of other images run
// until they are stopped. Each container that is created, updated or removed is one line of JSON on stdout,
// with the CPUs and the NUMA nodes of memory that the kubelet gave it.
//
// DANGER: when the kubelet removes a container it also removes all files whose names begin with the log path
// that the runtime tells. For an empty path these are the files in the kubelet's working directory. So every
// container has a log file in LOG-FOLDER.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: cri SOCKET LOG-FOLDER IMAGE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "cri:", err)
		os.Exit(1)
	}
}

func run(socket, logFolder string, images []string) error {
	if err := makeLogFolder(logFolder); err != nil {
		return err
	}
	if err := os.RemoveAll(socket); err != nil { // a killed predecessor's
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	service := newRuntime(logFolder, images, os.Stdout)
	cri.RegisterRuntimeServiceServer(server, service)
	cri.RegisterImageServiceServer(server, service)
	return server.Serve(listener)
}

// The kubelet takes log paths for the beginning of a glob pattern, and a relative one for a file in its own
// working directory.
func makeLogFolder(folder string) error {
	if !filepath.IsAbs(folder) || strings.ContainsAny(folder, `*?[\`) {
		return fmt.Errorf("log folder %q: it must be an absolute path without any of *?[\\", folder)
	}
	return os.MkdirAll(folder, 0o755)
}
