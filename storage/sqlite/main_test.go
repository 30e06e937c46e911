package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// postForeverEnv makes the test binary a process that posts until it is killed
// and prints each id once the store has confirmed it.
const postForeverEnv = "CLAYBOT_TEST_POST_FOREVER"

func TestMain(m *testing.M) {
	if path := os.Getenv(postForeverEnv); path != "" {
		if err := postForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if what := os.Getenv(migrateEnv); what != "" {
		if err := migrateOnce(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// theAgent is the one agent of most tests here.
var theAgent = claybot.Agent{ID: "atestagent00000000000000", Descriptor: claybot.User("telegram", "C1", "U1")}

func postForever(path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := Open(ctx, path, Config{})
	if err != nil {
		return err
	}
	if err := db.IndexAgents(ctx, theAgent); err != nil {
		return err
	}
	first, err := db.IndexedAgentByID(ctx, theAgent.ID)
	if err != nil {
		return err
	}
	confirmed := make(chan claybot.MessageID)
	for w := range 4 {
		go func() { // ends with the process
			for i := 0; ; i++ {
				id := claybot.MessageID(fmt.Sprintf("%d-%d-%d", first.Waiting, w, i))
				if _, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: textMessage(id)}); err == nil {
					confirmed <- id
				}
			}
		}()
	}
	for id := range confirmed {
		fmt.Println(id)
	}
	return nil
}

func textMessage(id claybot.MessageID) claybot.AgentMessage {
	return claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: "text of " + string(id)}
}

// TestKill kills a posting process again and again: what it confirmed is there
// and in order.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	var confirmed []claybot.MessageID
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), postForeverEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			confirmed = append(confirmed, claybot.MessageID(lines.Text()))
			if n == 20+37*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the process ended with %v", err)
		}
	}
	stored := waitingIDs(t, openAt(t, path))
	place := make(map[claybot.MessageID]int)
	for i, id := range stored {
		place[id] = i + 1
	}
	last := make(map[string]int)
	for _, id := range confirmed {
		if place[id] == 0 {
			t.Fatalf("%s was confirmed and is lost", id)
		}
		poster := id[:strings.LastIndexByte(string(id), '-')]
		if place[id] < last[string(poster)] {
			t.Fatalf("%s is out of order", id)
		}
		last[string(poster)] = place[id]
	}
}

// waitingIDs lists what waits for theAgent, in order.
func waitingIDs(t *testing.T, db *DB) []claybot.MessageID {
	t.Helper()
	waiting, err := db.Waiting(t.Context(), theAgent.ID, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]claybot.MessageID, len(waiting))
	for i, m := range waiting {
		ids[i] = m.ID
	}
	return ids
}
