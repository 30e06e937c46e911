package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// soonKilled is a script that kills a daemon right after a message arrived. The emulator
// shows a message before claybot can store that it was sent.
var soonKilled = regexp.MustCompile(`(?m)^(?:telegram|slack|discord|callback) expect .*\n(?:#.*\n|\n)*kill -KILL.*$`)

// notAwaited is a script that goes on while a killed daemon may still hold its data directory.
var notAwaited = regexp.MustCompile(`(?m)^kill -KILL (\w+)\n(?:#.*\n|\n)*(?:! )?claybot .*serve`)

// TestScriptsSettle checks that scripts settle, or wait for what they mean, between a message
// that arrived and kill -9: else they would depend on whether the daemon has stored the
// receipt of its send yet, and without it, claybot rightly sends the message again with a mark.
// They also wait for the end of a killed daemon before the next one.
func TestScriptsSettle(t *testing.T) {
	if !soonKilled.MatchString("telegram expect 7 hello\n# Dead.\nkill -KILL daemon\n") {
		t.Fatal("the pattern finds no example")
	}
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts: %v, %v", scripts, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := notAwaited.Find(text); found != nil {
			t.Errorf("%s starts a daemon while the killed one may still hold the directory; wait for it first:\n%s", path, found)
		}
		if found := soonKilled.Find(text); found != nil {
			t.Errorf("%s kills a daemon that may not have stored what it sent; settle first:\n%s", path, found)
		}
	}
}
