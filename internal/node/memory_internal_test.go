package node

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCgroupMemoryLimits(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []int64
	}{
		"version 2, limit on a group above": {
			map[string]string{
				"proc/self/cgroup": "0::/system.slice/wlm.service\n",
				"sys/fs/cgroup/system.slice/wlm.service/memory.max": "max\n",
				"sys/fs/cgroup/system.slice/memory.max":             "2147483648\n",
			},
			[]int64{2 << 30},
		},
		"version 2 in a container": {
			map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"},
			[]int64{512 << 20},
		},
		"version 1 beside an empty version 2": {
			map[string]string{
				"proc/self/cgroup": "4:cpu,memory:/a\n1:cpuset:/b\n0::/\n",
				"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			},
			[]int64{1 << 20, 9223372036854771712},
		},
		"no cgroup": {map[string]string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := cgroupMemoryLimits(root); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
