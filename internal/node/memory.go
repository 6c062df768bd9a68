package node

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// availableMemory returns how many bytes this process may use: the smallest limit of its cgroups, else the machine's
// memory; 1 GiB where neither can be told.
func availableMemory() int64 {
	available := machineMemory()
	if available <= 0 {
		available = 1 << 30
	}
	for _, limit := range cgroupMemoryLimits("/") {
		available = min(available, limit)
	}
	return available
}

// cgroupMemoryLimits returns the memory limits of the cgroup of this process and of those above it, from version 1 and 2
// alike. Root is where the file systems begin.
func cgroupMemoryLimits(root string) []int64 {
	membership, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil // not Linux
	}
	var limits []int64
	for line := range strings.Lines(string(membership)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch controllers := fields[1]; {
		case controllers == "":
		case strings.Contains(","+controllers+",", ",memory,"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if n, ok := readLimit(path.Join(root, mount, group, file)); ok {
				limits = append(limits, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return limits
}

func readLimit(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false // inside a container the groups above are not to be seen
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n > 0 // "max" is none
}
