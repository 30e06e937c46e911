package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/storage"
)

// checkpoints are those of a store.
type checkpoints struct {
	storage.CheckpointSet
	all map[string]string
}

func (c checkpoints) Checkpoint(_ context.Context, key string) (string, error) {
	return c.all[key], nil
}

func (c checkpoints) SetCheckpoint(_ context.Context, key, value string) error {
	c.all[key] = value
	return nil
}

func (c checkpoints) ListCheckpoints(_ context.Context, prefix string) (all []storage.Checkpoint, err error) {
	for _, key := range slices.Sorted(maps.Keys(c.all)) {
		if strings.HasPrefix(key, prefix) {
			all = append(all, storage.Checkpoint{Key: key, Value: c.all[key]})
		}
	}
	return all, nil
}

func flowLibrary(t *testing.T, world flows.World) (l *library, dir string) {
	dir = t.TempDir()
	config := new(settings)
	config.Store(&configs.Config{Source: configs.Source{File: filepath.Join(dir, "claybot.yaml")}})
	return newLibrary(config, checkpoints{all: make(map[string]string)}, func() flows.World { return world }, slog.New(slog.DiscardHandler)), filepath.Join(dir, "flows")
}

const ticket = `owner: chat/boss
concurrency: {key: "{{ trigger.channel }}", busy: skip, max: 2}
time: 1h
triggers: {chat: {on: chat}, daily: {cron: "0 9 * * *"}}
start: tell
nodes: {tell: {kind: reply, text: hello, next: END}}
`

// A flow acts for the person who wrote, also where its runs share a key; for its owner where a program
// started it; and another bot is no such program.
func TestFlowOwner(t *testing.T) {
	l, dir := flowLibrary(t, flows.World{Uses: namesIn})
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ticket.yaml"), []byte(ticket), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.look(t.Context(), true); err != nil || len(l.faults) > 0 {
		t.Fatal(err, l.faults)
	}
	take := func(user string, from claybot.Sender) claybot.Descriptor {
		d, m, ok := l.Take(claybot.User("chat", "room", user), claybot.AgentMessage{ID: claybot.MessageID(user), Type: claybot.MessageUser, From: from})
		if !ok || m.Flow.Version != l.Named("ticket").Hash || m.Flow.Busy != claybot.BusySkip || m.Deadline == 0 {
			t.Errorf("%s: %v %+v", user, ok, m)
		}
		return d
	}
	ann, bob, bot := take("ann", claybot.Sender{UserID: "ann"}), take("bob", claybot.Sender{UserID: "bob"}), take("B1", claybot.NewBot("B1", "CI"))
	hook := take("shop", claybot.Sender{UserID: "shop", Program: true})
	if ann.Owner != "chat/ann" || bob.Owner != "chat/bob" || bot.Owner != "chat/B1" || hook.Owner != "chat/boss" {
		t.Errorf("%q %q %q %q", ann.Owner, bob.Owner, bot.Owner, hook.Owner)
	}
	if again := take("ann", claybot.Sender{UserID: "ann"}); again.UID != ann.UID || ann.UID == bob.UID || bob.UID == hook.UID {
		t.Errorf("agents %q %q %q %q", again.UID, ann.UID, bob.UID, hook.UID)
	}
	task := claybot.Descriptor{Type: claybot.AgentFlow, UID: "task", Owner: "chat/boss"}
	if d, m := l.fires(task, claybot.AgentMessage{Flow: &claybot.FlowStart{Name: "ticket"}}); d.UID == "task" || m.Deadline == 0 || m.Flow.Version == "" {
		t.Errorf("at its time: %+v %+v", d, m)
	}
	if got := l.Engine(claybot.FlowStart{Name: "other", Version: "abc"}); got != "flow:other@abc" {
		t.Errorf("a flow that is gone: %s", got)
	}
}

// A fault goes when what the file names is there, without a change of the file; a folder that cannot be
// read, and a file with a name that is none of a flow, are faults, and stop no daemon.
func TestFlowFaultsPass(t *testing.T) {
	world, there := flows.World{Uses: namesIn}, map[string]flows.Params{}
	world.Tools = func(string) map[string]flows.Params { return there }
	l, dir := flowLibrary(t, world)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.open(t.Context()); err != nil || len(l.status()) != 1 {
		t.Fatalf("no folder: %v %v", err, l.status())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := []byte("owner: chat/boss\nstart: a\nnodes: {a: {kind: tool, tool: shop, next: END}}\n")
	for _, name := range []string{"a.yaml", "b.yml", "c.d.yaml", "e.test.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.look(t.Context(), false); err != nil || len(l.faults) != 5 || !strings.Contains(l.faults[0].String(), "no tool") {
		t.Fatal(err, l.faults)
	}
	for _, name := range []string{"b.yml", "c.d.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	there["shop"] = flows.Params{}
	for range 2 {
		if err := l.look(t.Context(), false); err != nil || len(l.faults) > 0 || l.Named("a") == nil {
			t.Fatal(err, l.faults)
		}
	}
}

// Members that have other flows are named, and how they differ, as long as both are there.
func TestMembersDiffer(t *testing.T) {
	left, dir := flowLibrary(t, flows.World{Uses: namesIn})
	right, other := flowLibrary(t, flows.World{Uses: namesIn})
	right.store = left.store
	there := map[string]bool{"left": true, "right": true}
	members := func(self, other string) func() (string, []string) {
		return func() (string, []string) {
			if there[other] {
				return self, []string{other}
			}
			return self, nil
		}
	}
	left.members, right.members = members("left", "right"), members("right", "left")
	put := func(dir, name, text string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	says := func(want ...string) {
		t.Helper()
		for range 2 { // each learns what the other has told before
			now = now.Add(compareEvery)
			for _, l := range []*library{left, right} {
				if err := l.look(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				if err := l.compare(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []string
		for _, l := range []*library{left, right} {
			for _, x := range l.status() {
				got = append(got, x.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("says %q, want %q", got, want)
		}
	}
	put(dir, "a", ticket)
	put(other, "a", ticket)
	says()
	put(dir, "a", ticket+"# changed\n")
	put(other, "b", strings.ReplaceAll(ticket, "on: chat", "on: shop"))
	says(
		"the cluster member right has other workflows: a (another version), b (only there)",
		"the cluster member left has other workflows: a (another version), b (only here)",
	)
	there["left"], there["right"] = false, false
	says()
	there["left"], there["right"] = true, true
	put(dir, "b", strings.ReplaceAll(ticket, "on: chat", "on: shop"))
	put(other, "a", ticket+"# changed\n")
	says()
}

// Words that describe arguments are no change of them.
func TestSchemaOf(t *testing.T) {
	const schema = `{"type":"object","description":"a","properties":{"description":{"type":"string","description":"b"},"n":{"type":"integer"}},"required":["n"]}`
	same := strings.NewReplacer(`"a"`, `"other"`, `"b"`, `"words"`).Replace(schema)
	for _, tt := range []struct {
		name, schema string
		same         bool
	}{
		{"words", same, true},
		{"a type", strings.ReplaceAll(schema, "integer", "string"), false},
		{"an argument that is called description", strings.ReplaceAll(schema, `"description":{"type":"string","description":"b"},`, ""), false},
		{"required", strings.ReplaceAll(schema, `["n"]`, `["n","description"]`), false},
		{"no JSON", "{", false},
	} {
		if got := schemaOf([]byte(tt.schema)) == schemaOf([]byte(schema)); got != tt.same {
			t.Errorf("%s: the same %v", tt.name, got)
		}
	}
}
