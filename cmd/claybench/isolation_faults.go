package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A fileFault makes the files of one agent faulty, and mends them. kept is where it
// leaves what it replaces.
type fileFault struct {
	name         string
	strike, mend func(home, kept string) error
}

// garbageSize is how much stands in the place of a history.
const garbageSize = 4 << 20

// fileFaults are the faults that are measured, and none for comparison: its person
// writes as much as the others'.
func fileFaults() []fileFault {
	nothing := func(_, _ string) error { return nil }
	put := func(name string, place func(path string) error) func(home, kept string) error {
		return func(home, kept string) error {
			path := filepath.Join(home, name)
			if err := os.Rename(path, kept); err != nil {
				return err
			}
			return place(path)
		}
	}
	restore := func(name string) func(home, kept string) error {
		return func(home, kept string) error {
			path := filepath.Join(home, name)
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Rename(kept, path)
		}
	}
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	loop := func(path string) error { return os.Symlink(filepath.Base(path), path) }
	garbage := func(home, _ string) error {
		rng := rand.New(rand.NewPCG(1, 2))
		b := make([]byte, garbageSize)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return os.WriteFile(filepath.Join(home, "history.jsonl"), b, 0o600)
	}
	return []fileFault{
		{"as they should be", nothing, nothing},
		{"a directory in place of `state.json`", put("state.json", folder), restore("state.json")},
		{"a FIFO in place of `history.jsonl`", put("history.jsonl", fifo), restore("history.jsonl")},
		{fmt.Sprintf("%d KiB of garbage in `history.jsonl`", garbageSize>>10), garbage, nothing},
		{"a link to itself in place of their directory", put("", loop), restore("")},
	}
}

// agentHome is the directory of the agent of a private chat on the emulated Telegram,
// whose person has the same id.
func agentHome(dir string, chat int64) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "data", "agents", "*", "descriptor.json"))
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		var d struct{ ChannelID string }
		b, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(b, &d) == nil && d.ChannelID == strconv.FormatInt(chat, 10) {
			return filepath.Dir(path), nil
		}
	}
	return "", fmt.Errorf("chat %d has no agent", chat)
}
