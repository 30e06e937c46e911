package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A change that makes the file larger than what is read is refused before anything is written, by the commands and the
// API: claybot would not start again.
func TestConfigTooLarge(t *testing.T) {
	text := "model: demo\n# " + strings.Repeat("x", 1<<20-100) + "\n"
	h := startDaemon(t, text, nil)
	defer h.daemon.reloadOnHangup(h.ctx, h.env)()
	file, prompt := filepath.Join(h.dir, "claybot.yaml"), strings.Repeat("p", 200)
	const want = "nothing was changed: with this change, the file is larger than 1048576 bytes"
	if err := (configSetCmd{Key: "agents.p1.prompt", Value: &prompt}).Run(h.env); exitCode(err) != exitConfig || !strings.Contains(err.Error(), want) {
		t.Errorf("by command: %v", err)
	}
	if got := h.config(400, "PUT", "/config/agents.p1.prompt", "", `{"value":"`+prompt+`"}`, nil); !strings.Contains(strings.ToLower(got), want) {
		t.Errorf("by the API: %s", got)
	}
	history, err := os.ReadFile(file + ".history")
	if got, _ := os.ReadFile(file); string(got) != text || len(history) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file has %d bytes, the history is %s, %v", len(got), history, err)
	}
	h.config(200, "PUT", "/config/log_level", "", `{"value":"debug"}`, nil) // for which there is room
}
