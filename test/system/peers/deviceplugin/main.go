// deviceplugin RESOURCE FILE: a kubelet device plugin for devices that do not exist.
//
// FILE lists them, one a line: ID [NUMA-NODE[,NUMA-NODE...]] [unhealthy]. When it changes, the kubelet is told;
// replace it by a rename, because half a file is a file too. When the kubelet is started anew, the plugin
// registers again, as real ones do. A container that gets devices finds their ids in FAKE_VISIBLE_DEVICES.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// How often the file and the kubelet's socket are looked at.
const interval = 100 * time.Millisecond

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: deviceplugin RESOURCE FILE")
		os.Exit(2)
	}
	p, file := newPlugin(os.Args[1], dp.DevicePluginPath), os.Args[2]
	if err := p.read(file); err != nil {
		fmt.Fprintln(os.Stderr, "deviceplugin:", err)
		os.Exit(1)
	}
	var trouble string
	for ; ; time.Sleep(interval) {
		trouble = sayOnce(trouble, errors.Join(p.read(file), p.keepRegistered()))
	}
}

// sayOnce prints an error unless it is the one that was said last, and returns what was said last.
func sayOnce(last string, err error) string {
	if err == nil {
		return ""
	}
	if err.Error() != last {
		fmt.Fprintln(os.Stderr, "deviceplugin:", err)
	}
	return err.Error()
}
