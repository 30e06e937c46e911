package runs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/jsonlines"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// writeForeverEnv makes the test binary a process that appends events to a run
// until it is killed, with a relay beside it. It prints each seq that is
// committed.
const writeForeverEnv = "CLAYBOT_TEST_WRITE_FOREVER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(writeForeverEnv); folder != "" {
		if err := writeForever(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

const killedAgent = claybot.AgentID("atestagent00000000000000")

func writeForever(folder string) error {
	ctx := context.Background()
	hub := runs.NewHub()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "claybot.db"), sqlite.Config{Committed: hub.Committed})
	if err != nil {
		return err
	}
	relay := working(&runs.Relay{Store: db, Hub: hub, Sinks: map[string]runs.Sink{"file": jsonlines.New(filepath.Join(folder, "events.jsonl"))}})
	if err := db.Sinks(ctx, true, "file"); err != nil { // before the first event
		return err
	}
	go relay.Run(ctx) // ends with the process
	agent := claybot.Agent{ID: killedAgent, Descriptor: claybot.User("web", "C", "U")}
	if err := db.IndexAgents(ctx, agent); err != nil {
		return err
	}
	_, err = db.Post(ctx, storage.Posting{To: agent.ID, Message: claybot.AgentMessage{ID: "m", Type: claybot.MessageUser, Text: "x"}})
	if err != nil {
		return err
	}
	acquired, _, err := db.Acquire(ctx, "node", time.Hour, 1, 1)
	if err != nil || len(acquired) != 1 {
		return fmt.Errorf("acquired %d: %w", len(acquired), err)
	}
	var batch []claybot.MessageID
	if acquired[0].Run == nil {
		batch = []claybot.MessageID{"m"}
	}
	run, err := db.Begin(ctx, acquired[0].Lease, "run1", batch, storage.Beginning{})
	for seq := run.LastSeq; err == nil; seq += 3 {
		fmt.Println(seq)
		err = db.Append(ctx, acquired[0].Lease, "run1", true,
			runs.NodeBegan("run1", "model", 1), runs.NodeBegan("run1", "tools", 1), runs.NodeBegan("run1", "model", 2))
	}
	return err
}

// TestKill kills a process between commits and what is told of them, again and
// again. Readers then see each event once, the sink each at least once, and
// nothing that was confirmed is lost.
func TestKill(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "events.jsonl")
	var confirmed int64
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), writeForeverEnv+"="+folder)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, killed := bufio.NewScanner(out), false
		for n := 0; lines.Scan(); n++ {
			if confirmed, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			// The relay is no part of the commits: before the last end it has its turn.
			if !killed && n >= 9+29*round && (round < 3 || len(seqsIn(t, file)) > 0) {
				killed = true
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the process ended with %v", err)
		}
	}
	synctest.Test(t, func(t *testing.T) { checkKilled(t, folder, confirmed) })
}

func checkKilled(t *testing.T, folder string, confirmed int64) {
	r := &rig{t: t, path: filepath.Join(folder, "claybot.db"), hub: runs.NewHub()}
	r.db = openDB(t, r.path, r.hub.Committed)
	file := filepath.Join(folder, "events.jsonl")
	before := len(seqsIn(t, file))
	_, stop := r.relay(map[string]runs.Sink{"file": jsonlines.New(file)})
	l := &live{rig: r, agent: killedAgent, id: "run1"}
	tl := r.tail(t.Context(), l.id, 0)
	synctest.Wait()
	l.resume()
	l.finish()
	if l.seq < confirmed {
		t.Errorf("%d was confirmed, the last event is %d", confirmed, l.seq)
	}
	tl.check(t, span(1, l.seq))
	synctest.Wait()
	time.Sleep(time.Second)
	stop()
	told := seqsIn(t, file)
	if before == 0 || len(told) == before {
		t.Errorf("the sink had %d events before and %d after: nothing was tested", before, len(told))
	}
	// Each seq is there, and none comes for the first time before a lower one.
	var firsts []int64
	for _, seq := range told {
		if !slices.Contains(firsts, seq) {
			firsts = append(firsts, seq)
		}
	}
	wantSeqs(t, "the file", firsts, span(1, l.seq))
}

// seqsIn reads the seqs in a file of events; the last line may be torn.
func seqsIn(t *testing.T, path string) []int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var seqs []int64
	for line := range strings.Lines(string(text)) {
		var e claybot.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			if !strings.HasSuffix(line, "\n") {
				break
			}
			t.Fatalf("line %q: %v", line, err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}
