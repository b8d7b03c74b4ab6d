package main

import (
	"fmt"
	"strings"
	"testing"

	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// text writes devices as the file has them, with their health always said.
func text(devices []*dp.Device) string {
	var lines []string
	for _, d := range devices {
		nodes := "anywhere"
		if d.Topology != nil {
			nodes = "on"
			for _, n := range d.Topology.Nodes {
				nodes += fmt.Sprintf(" %d", n.ID)
			}
		}
		lines = append(lines, d.ID+" "+nodes+" "+d.Health)
	}
	return strings.Join(lines, "; ")
}

func TestDevicesAreReadWithTheirNUMANodesAndHealth(t *testing.T) {
	devices, err := parseDevices("gpu0 0\n\ngpu1  1 unhealthy\ngpu2 0,1\ngpu3\ngpu4 unhealthy\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "gpu0 on 0 Healthy; gpu1 on 1 Unhealthy; gpu2 on 0 1 Healthy; gpu3 anywhere Healthy; gpu4 anywhere Unhealthy"
	if got := text(devices); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnEmptyFileHasNoDevices(t *testing.T) {
	if devices, err := parseDevices("\n"); err != nil || len(devices) != 0 {
		t.Errorf("devices %v, error %v", devices, err)
	}
}

func TestALineThatIsNoDeviceIsAnErrorThatShowsIt(t *testing.T) {
	for _, line := range []string{"gpu1 x", "gpu1 -1", "gpu1 0,", "gpu1 0 sick", "gpu1 0 1 unhealthy", "gpu0 1"} {
		_, err := parseDevices("gpu0 0\n" + line)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line 2, %q", line)) {
			t.Errorf("%q: error %v", line, err)
		}
	}
}
