package claybot_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A sound little tree, in which each rule is kept.
const soundTree = `
go.mod: module m|require (|	example.com/sdk v1.0.0|	example.com/sdk/v2 v2.0.0|	pgregory.net/rapid v1.0.0 // indirect|)
doc.go: // Package claybot is it.|package claybot|import "fmt"
storage/s.go: // Package storage is a contract.|package storage|import "m"
storage/storagetest/t.go: // Package storagetest is a suite.|package storagetest|import ("m"; "m/storage"; "testing")
storage/relational/r.go: // Package relational is a footing.|package relational|import ("m"; "m/storage"; "m/llm")
storage/sqlite/s.go: // Package sqlite is one.|package sqlite|import ("m/storage"; "m/storage/relational"; "example.com/sdk/driver"; "golang.org/x/sync/errgroup")
storage/sqlite/s_test.go: package sqlite|import ("m/storage/storagetest"; "m/storage/relational"; "m/agentsystem"; "pgregory.net/rapid")
storage/relational/r_test.go: package relational_test|import ("m/storage/relational"; "m/storage/sqlite")
llm/l.go: // Package llm is a contract.|package llm
tools/t.go: // Package tools is a contract.|package tools|import "m/llm"
tools/clock/c.go: // Package clock is one.|package clock|import "m/tools"
connectors/c.go: // Package connectors is a contract.|package connectors
connectors/slack/s.go: // Package slack is one.|package slack|import ("m/connectors"; "m/storage"; "example.com/sdk/v2")
connectors/slack/slacktest/s.go: // Package slacktest is an emulator.|package slacktest|import ("m/connectors"; "example.com/sdk/v2/x")
agentsystem/a.go: // Package agentsystem is it.|package agentsystem|import ("m/tools"; "m/storage")
web/w.go: // Package web is it.|package web|import "m/agentsystem"
cmd/claybot/main.go: // Claybot is the daemon.|package main|import ("m/web"; "m/storage/sqlite"; "m/connectors/slack/slacktest"; "m/cmd/claybot/demo")
cmd/claybot/demo/d.go: // Package demo is a part of it.|package demo|import "m"
docs/ARCHITECTURE.md: words
testdata/bad/b.go: this is not Go
`

// plant lays out a tree from lines "name: text", where | breaks a line.
func plant(t *testing.T, layouts ...string) fstest.MapFS {
	t.Helper()
	fsys := make(fstest.MapFS)
	for _, layout := range layouts {
		for line := range strings.Lines(layout) {
			if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				fsys[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "|", "\n"))}
			}
		}
	}
	return fsys
}

func TestFloorsFindPlantedViolations(t *testing.T) {
	for _, tt := range []struct {
		name, plant string
		want        []string // parts of the one violation; none: the tree is sound
	}{
		{"sound", "", nil},
		{"up", `storage/up.go: package storage|import "m/agentsystem"`, []string{"storage/up.go", "floor 1 imports floor 10"}},
		{"sideways", `storage/side.go: package storage|import "m/llm"`, []string{"floor 1 imports floor 1"}},
		{"vocabulary imports", `up.go: package claybot|import "m/storage"`, []string{"floor 0 imports floor 1"}},
		{"vocabulary and a library", `lib.go: package claybot|import "example.com/sdk"`, []string{"standard library alone"}},
		{"implementation outside cmd", `web/bad.go: package web|import "m/storage/sqlite"`, []string{"web/bad.go", "only commands import an implementation"}},
		{"sibling implementation", `connectors/slack/bad.go: package slack|import "m/storage/sqlite"`, []string{"only commands import an implementation"}},
		{"contract imports its implementation", `storage/bad.go: package storage|import "m/storage/sqlite"`, []string{"only commands import an implementation"}},
		{"contract on a footing", `storage/bad.go: package storage|import "m/storage/relational"`, []string{"storage/bad.go", "only implementations of storage stand on it"}},
		{"command on a footing", `cmd/claybot/bad.go: package main|import "m/storage/relational"`, []string{"only implementations of storage stand on it"}},
		{"another contract on a footing", `llm/bad.go: package llm|import "m/storage/relational"`, []string{"only implementations of storage stand on it"}},
		{"implementation of another contract on a footing", `connectors/slack/bad.go: package slack|import "m/storage/relational"`, []string{"only implementations of storage stand on it"}},
		{"helper on a footing", `storage/storagetest/bad.go: package storagetest|import "m/storage/relational"`, []string{"only implementations of storage stand on it"}},
		{"footing imports an implementation", `storage/relational/bad.go: package relational|import "m/storage/sqlite"`, []string{"only commands import an implementation"}},
		{"footing imports up", `storage/relational/bad.go: package relational|import "m/agentsystem"`, []string{"floor 2 imports floor 10"}},
		{"footing imports itself", `storage/relational/bad.go: package relational|import "m/storage/relational"`, []string{"only implementations of storage stand on it"}},
		{"library of a footing and of what stands on it", `storage/relational/bad.go: package relational|import "example.com/sdk/deep"`, []string{"storage/relational and storage/sqlite"}},
		{"helper outside tests", `agentsystem/bad.go: package agentsystem|import "m/storage/storagetest"`, []string{"only tests and commands import a helper"}},
		{"helper imports up", `storage/storagetest/bad.go: package storagetest|import "m/agentsystem"`, []string{"floor 1 imports floor 10"}},
		{"emulator imports another implementation", `connectors/slack/slacktest/bad.go: package slacktest|import "m/storage/sqlite"`, []string{"only commands import an implementation"}},
		{"suite of a contract on implementations below", "web/webtest/ok.go: // Package webtest helps.|package webtest|import \"m/storage/sqlite\"", nil},
		{"command imported", `web/bad.go: package web|import "m/cmd/claybot/demo"`, []string{"commands are not imported"}},
		{"commands import each other", "cmd/two/main.go: // Two is another.|package main|import \"m/cmd/claybot/demo\"", []string{"commands do not import each other"}},
		{"no floor", "things/t.go: // Package things is new.|package things", []string{"things/t.go", "no floor"}},
		{"no floor below an implementation", "storage/sqlite/deep/d.go: // Package deep is new.|package deep", []string{"no floor"}},
		{"package in cmd itself", "cmd/c.go: // Cmd is wrong.|package main", []string{"no floor"}},
		{"library in two folders", `web/bad.go: package web|import "example.com/sdk/v2/deep"`, []string{"example.com/sdk/v2", "connectors/slack and web"}},
		{"test library in the binary", `web/bad.go: package web|import "pgregory.net/rapid"`, []string{"only tests import it"}},
		{"no package comment", "llm/openai/o.go: package openai", []string{"llm/openai: no package comment"}},
		{"comment of another package", "llm/openai/o.go: // Package closedai is it.|package openai", []string{"llm/openai: no package comment"}},
		{"comment in a test only", "llm/openai/o.go: package openai\nllm/openai/o_test.go: // Package openai is it.|package openai", []string{"llm/openai: no package comment"}},
		{"command without comment", "cmd/two/main.go: package main", []string{"cmd/two: no package comment"}},
		{"long file", "llm/long.go: package llm" + strings.Repeat("|", 501), []string{"llm/long.go: 501 lines"}},
		{"long test", "llm/long_test.go: package llm" + strings.Repeat("|", 501), nil},
		{"forbidden folder", "web/utils/u.txt: words", []string{"web/utils", "find the noun"}},
		{"hidden and underscore folders", ".x/bad.go: nonsense\n_x/bad.go: nonsense\nbin/pkg/bad.go: nonsense", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree, err := readTree(plant(t, soundTree, tt.plant))
			if err != nil {
				t.Fatal(err)
			}
			got := tree.check()
			if len(tt.want) == 0 && len(got) != 0 || len(tt.want) > 0 && len(got) != 1 {
				t.Fatalf("violations: %q", got)
			}
			if i := slices.IndexFunc(tt.want, func(part string) bool { return !strings.Contains(got[0], part) }); i >= 0 {
				t.Errorf("violation %q does not say %q", got[0], tt.want[i])
			}
		})
	}
}

// A tree that cannot be read is an error, not a tree without violations.
func TestFloorsRefuseWhatTheyCannotRead(t *testing.T) {
	for name, layout := range map[string]string{
		"no go.mod":      "doc.go: package claybot",
		"no module line": "go.mod: go 1.26",
		"no Go":          soundTree + "\nweb/bad.go: pack age",
	} {
		if _, err := readTree(plant(t, layout)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
