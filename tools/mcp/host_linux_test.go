package mcp_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/workspace/local"
)

// A server on the host cannot read what claybot was started with, whichever user both run
// as.
func TestHostReadsNothing(t *testing.T) {
	if err := local.Hide(); err != nil { // as the daemon does first
		t.Fatal(err)
	}
	const look = `tr '\000' ' ' < /proc/$PPID/environ && echo readable; grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs)' /proc/self/status`
	p, err := mcp.StartHost(mcp.Server{Name: "srv", Command: []string{"/bin/sh", "-c", look}, Where: mcp.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := io.ReadAll(p)
	if err != nil || strings.Contains(string(out), "readable") {
		t.Fatalf("the environment was read, or nothing was: %v", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) != 8 || fields[7] != "1" {
		t.Fatalf("%q", out)
	}
	for i := 1; i < 7; i += 2 {
		if strings.Trim(fields[i], "0") != "" && (i != 5 || fields[3] != strings.Repeat("0", 16)) {
			t.Errorf("it keeps rights: %q", out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code, err := p.Wait(ctx); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}
