package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFileNextStep: a command that finds the configuration file missing or unreadable says how to go on.
func TestFileNextStep(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.yaml"), "no such file or directory; create it with: claybot config init, or name another one with -c\n"},
		{"unreadable", dir, "is a directory; let this user read it, or name another file with -c\n"},
	} {
		for _, command := range []string{"serve", "status", "chat", "config check"} {
			t.Run(tt.name+"/"+command, func(t *testing.T) {
				t.Setenv("CLAYBOT_DATA_DIR", filepath.Join(dir, "data"))
				var out, errs strings.Builder
				code := run(append(strings.Fields(command), "-c", tt.path), strings.NewReader(""), &out, &errs)
				if code != exitConfig || strings.Count(errs.String(), tt.want) != 1 {
					t.Errorf("exit code %d and %q, want %d and %q", code, errs.String(), exitConfig, tt.want)
				}
			})
		}
	}
}
