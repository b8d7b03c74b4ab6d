package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

func TestAClaimIsPreparedOnceTheFileHasIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "claims")
	d := &driver{name: "gpu.example.com", file: file}
	request := &dra.NodePrepareResourcesRequest{
		Claims: []*dra.Claim{{Namespace: "ml", Name: "two", Uid: "uid-2"}},
	}
	write := func(text string) *dra.NodePrepareResourceResponse {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		answer, err := d.NodePrepareResources(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Claims["uid-2"]
	}
	if before := write("ml/one pool gpu-0\n"); before.Error == "" || len(before.Devices) != 0 {
		t.Errorf("not in the file, and prepared as %v", before)
	}
	after := write("ml/two pool gpu-1\n\nml/two pool gpu-2\n")
	if after.Error != "" || len(after.Devices) != 2 || after.Devices[1].DeviceName != "gpu-2" {
		t.Errorf("prepared as %v", after)
	}
}

func TestALineThatIsNoDeviceIsRefused(t *testing.T) {
	for _, text := range []string{"ml/one pool", "one pool gpu-0", "ml/one pool gpu-0 gpu-1"} {
		if given, err := parseClaims(text); err == nil {
			t.Errorf("%q was read as %v", text, given)
		}
	}
}

func TestEveryClaimIsUnprepared(t *testing.T) {
	answer, err := (&driver{}).NodeUnprepareResources(context.Background(), &dra.NodeUnprepareResourcesRequest{
		Claims: []*dra.Claim{{Uid: "uid-1"}, {Uid: "uid-2"}},
	})
	if err != nil || len(answer.Claims) != 2 {
		t.Errorf("%v, %v", answer, err)
	}
}
