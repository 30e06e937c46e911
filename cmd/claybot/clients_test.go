package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The official MCP SDK at its default settings uses the agents of a daemon. With
// CLAYBOT_TEST_TEN_MINUTES, its long call takes ten minutes.
func TestOfficialMCPClient(t *testing.T) {
	dir, err := filepath.Abs("../../bin/clients")
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat(filepath.Join(dir, "node_modules", "@modelcontextprotocol", "sdk"))
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the official MCP client is not tested, which must not be with CI=true: there is no node, or no bin/clients; run scripts/clients.sh")
		}
		t.Skip("SKIPPED, the official MCP client is not tested: there is no node, or no bin/clients (scripts/clients.sh installs it)")
	}
	t.Parallel() // most of the time it waits
	p := scripts("testdata/clients")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("CLIENTS", dir)
		return setup(e)
	}
	p.Condition = func(string) (bool, error) { return os.Getenv("CLAYBOT_TEST_TEN_MINUTES") != "", nil }
	testscript.Run(t, p)
}
