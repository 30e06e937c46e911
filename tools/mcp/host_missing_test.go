package mcp

import (
	"os"
	"path/filepath"
	"testing"
)

// An interpreter that a script names relative to the folder of its process is looked for by the system alone.
func TestRelativeInterpreter(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"interpreter": "#!/bin/sh\n", "server": "#!./interpreter\n", "broken": "#!/gone/interpreter\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	for name, missing := range map[string]bool{"server": false, "broken": true} {
		s := Server{Where: Host, Command: []string{filepath.Join(dir, name)}, Dir: dir}
		if err := s.Missing(); (err != nil) != missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}
