// podresources SOCKET list|allocatable|get NAMESPACE NAME: what a kubelet says of its pods' resources, as JSON.
//
// It is asked with Kubernetes' own client, so that the tests have a second word beside our agent's. The JSON is
// the answer on the wire: what has protobuf's default is left out, so {} is the NUMA node 0, and 64-bit numbers
// are strings.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Emulated machines are slow.
const patience = 10 * time.Second

var errUsage = errors.New("usage: podresources SOCKET list|allocatable|get NAMESPACE NAME")

func main() {
	answer, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(protojson.Format(answer))
}

func run(arguments []string) (proto.Message, error) {
	if len(arguments) < 2 {
		return nil, errUsage
	}
	socket, question := arguments[0], arguments[1:]
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := ask(ctx, podresources.NewPodResourcesListerClient(connection), question)
	if err != nil && !errors.Is(err, errUsage) {
		err = fmt.Errorf("podresources: asking %s for %v: %w", socket, question, err)
	}
	return answer, err
}

func ask(ctx context.Context, kubelet podresources.PodResourcesListerClient, question []string) (proto.Message, error) {
	switch {
	case question[0] == "list" && len(question) == 1:
		return kubelet.List(ctx, &podresources.ListPodResourcesRequest{})
	case question[0] == "allocatable" && len(question) == 1:
		return kubelet.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	case question[0] == "get" && len(question) == 3:
		return kubelet.Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: question[1], PodName: question[2]})
	}
	return nil, errUsage
}
