package main

import (
	"fmt"
	"strconv"
	"strings"

	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// parseDevices reads lines of "ID [NUMA-NODE[,NUMA-NODE...]] [unhealthy]". A device without a NUMA node is one
// whose place its plugin does not tell.
func parseDevices(text string) ([]*dp.Device, error) {
	var devices []*dp.Device
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		device, err := parseDevice(words)
		if err == nil && seen[device.ID] {
			err = fmt.Errorf("device %s a second time", device.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
		seen[device.ID] = true
		devices = append(devices, device)
	}
	return devices, nil
}

func parseDevice(words []string) (*dp.Device, error) {
	device := &dp.Device{ID: words[0], Health: dp.Healthy}
	words = words[1:]
	if n := len(words); n > 0 && words[n-1] == "unhealthy" {
		device.Health = dp.Unhealthy
		words = words[:n-1]
	}
	if len(words) > 1 {
		return nil, fmt.Errorf("more words than ID, NUMA nodes and unhealthy")
	}
	if len(words) == 0 {
		return device, nil
	}
	device.Topology = &dp.TopologyInfo{}
	for _, word := range strings.Split(words[0], ",") {
		node, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q is no NUMA node", word)
		}
		device.Topology.Nodes = append(device.Topology.Nodes, &dp.NUMANode{ID: int64(node)})
	}
	return device, nil
}
