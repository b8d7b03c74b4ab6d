package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver answers the kubelet. It keeps nothing, so gRPC's goroutines need no lock.
type driver struct {
	dra.UnimplementedDRAPluginServer
	name   string
	file   string // which devices claims were given
	folder string // of its socket
}

func (d *driver) socket() string { return filepath.Join(d.folder, "dra.sock") }

func (d *driver) NodePrepareResources(
	_ context.Context, request *dra.NodePrepareResourcesRequest,
) (*dra.NodePrepareResourcesResponse, error) {
	text, err := os.ReadFile(d.file)
	if err != nil {
		return nil, err
	}
	given, err := parseClaims(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.file, err)
	}
	answer := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, claim := range request.GetClaims() {
		name := claim.GetNamespace() + "/" + claim.GetName()
		prepared := &dra.NodePrepareResourceResponse{Devices: given[name]}
		if len(prepared.Devices) == 0 {
			prepared.Error = "nobody said which devices " + name + " was given"
		}
		answer.Claims[claim.GetUid()] = prepared
		fmt.Println("prepared", name, prepared)
	}
	return answer, nil
}

func (d *driver) NodeUnprepareResources(
	_ context.Context, request *dra.NodeUnprepareResourcesRequest,
) (*dra.NodeUnprepareResourcesResponse, error) {
	answer := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, claim := range request.GetClaims() {
		answer.Claims[claim.GetUid()] = &dra.NodeUnprepareResourceResponse{}
	}
	return answer, nil
}

// parseClaims reads lines of "NAMESPACE/CLAIM POOL DEVICE". A device is for all requests of its claim.
func parseClaims(text string) (map[string][]*dra.Device, error) {
	given := map[string][]*dra.Device{}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 || !strings.Contains(words[0], "/") {
			return nil, fmt.Errorf("line %d, %q: not NAMESPACE/CLAIM POOL DEVICE", i+1, line)
		}
		given[words[0]] = append(given[words[0]], &dra.Device{PoolName: words[1], DeviceName: words[2]})
	}
	return given, nil
}

// registrar tells a kubelet what the driver is.
type registrar struct {
	registration.UnimplementedRegistrationServer
	driver *driver
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.DRAPlugin,
		Name:              r.driver.name,
		Endpoint:          r.driver.socket(),
		SupportedVersions: []string{dra.DRAPluginService},
	}, nil
}

func (r registrar) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if status.GetPluginRegistered() {
		fmt.Println("registered", r.driver.name)
	} else {
		fmt.Println("not registered:", status.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}
