package main

import (
	"testing"
	"testing/fstest"
)

// The limit of memory is the least one of the groups that the process is in.
func TestMemoryLimit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no groups", nil, 0},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "75497472\n"}, 72 << 20},
		{"version 2, of the group above", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "75497472\n",
		}, 72 << 20},
		{"version 2, in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "75497472\n"}, 72 << 20},
		{"version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/a\n2:cpu:/\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "75497472\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 72 << 20},
		{"version 1, in a container", map[string]string{
			"proc/self/cgroup": "4:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "75497472\n",
		}, 72 << 20},
		{"none set", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"not a number", map[string]string{"proc/self/cgroup": "nonsense\n0::/a\n", "sys/fs/cgroup/a/memory.max": "lots\n"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryLimit(root); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Runs that fit are never more than configured, and never so few that nothing goes on.
func TestRunsThatFit(t *testing.T) {
	for _, tt := range []struct {
		l    limits
		most int
		want int
	}{
		{limits{}, 1000, 1000},
		{limits{memory: 72 << 20}, 1000, 99},
		{limits{memory: 4 << 30}, 1000, 1000},
		{limits{memory: 32 << 20}, 1000, 4},
		{limits{files: 1024}, 1000, 320},
		{limits{files: 64}, 1000, 4},
		{limits{memory: 72 << 20}, 10, 10},
		{limits{memory: 1 << 20}, 2, 2},
	} {
		if got := tt.l.runs(tt.most); got != tt.want {
			t.Errorf("%+v, %d configured: got %d, want %d", tt.l, tt.most, got, tt.want)
		}
	}
}
