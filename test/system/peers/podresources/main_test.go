package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet knows the pod ml/llm-0 only.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
}

func (kubelet) Get(_ context.Context, r *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	if r.PodNamespace != "ml" || r.PodName != "llm-0" {
		return nil, errors.New("pod not found")
	}
	return &podresources.GetPodResourcesResponse{PodResources: &podresources.PodResources{Name: r.PodName}}, nil
}

func startKubelet(t *testing.T) (socket string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "podresources") // short: a socket's path has at most 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket = filepath.Join(folder, "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, kubelet{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return socket
}

func TestGetAsksForThePodOfTheNamespace(t *testing.T) {
	answer, err := run([]string{startKubelet(t), "get", "ml", "llm-0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.(*podresources.GetPodResourcesResponse).PodResources.Name; got != "llm-0" {
		t.Errorf("got the pod %q", got)
	}
}

func TestAnswersThatAreErrorsAreErrors(t *testing.T) {
	socket := startKubelet(t)
	for _, question := range [][]string{{"get", "llm-0", "ml"}, {"list"}, {"allocatable"}} { // list: not implemented
		if answer, err := run(append([]string{socket}, question...)); err == nil {
			t.Errorf("%v: %v", question, answer)
		}
	}
}

func TestAKubeletThatIsNotThereIsAnError(t *testing.T) {
	if answer, err := run([]string{filepath.Join(t.TempDir(), "kubelet.sock"), "list"}); err == nil {
		t.Errorf("answer %v", answer)
	}
}

func TestWhatIsNoQuestionIsAnsweredWithTheUsage(t *testing.T) {
	for _, arguments := range [][]string{{}, {"sock"}, {"sock", "all"}, {"sock", "list", "ml"}, {"sock", "get", "llm-0"}} {
		if _, err := run(arguments); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}
