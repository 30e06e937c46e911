package heartbeat_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/storage"
)

// Hours with nothing to do cost nothing but looks at the folder.
func TestIdleHours(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string // nil: not even a folder
		hours time.Duration
	}{
		{"no folder", nil, 3},
		{"an empty folder", map[string]string{}, 3},
		{"disabled", map[string]string{"a.md": "---\nenabled: false\n---\nlook"}, 3},
		{"empty prompts", map[string]string{"a.md": "---\ntitle: A\n---\n\n", "b.md": " \n"}, 1},
		{"no tasks", map[string]string{"check.sh": "exit 0", "a.txt": "look", "a.md~": "look", "a": "look"}, 1},
		{"bad files", map[string]string{"a.md": "---\nevery: soon\n---\nlook", "B.md": "look"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				if tc.files != nil {
					if err := os.MkdirAll(r.dir, 0o700); err != nil {
						r.Fatal(err)
					}
				}
				for name, text := range tc.files {
					r.file(name, text)
				}
				r.start()
				r.pass(tc.hours * time.Hour)
				if got := r.state(); got != (state{}) {
					r.Errorf("%+v", got)
				}
				if h := r.heart.Health(); h.State != connectors.StateLive || h.LastOK.IsZero() {
					r.Errorf("health %+v", h)
				}
				if _, err := os.Stat(r.dir); tc.files == nil && !errors.Is(err, os.ErrNotExist) {
					r.Errorf("the folder was made: %v", err)
				}
			})
		})
	}
}

// Hours in which nothing is due cost nothing either.
func TestNotDue(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "---\nevery: 2d\n---\nlook")
		r.start()
		r.pass(time.Minute)
		before := r.state()
		r.pass(3 * time.Hour)
		if got := r.state(); got != before || got.posts != 1 || got.receipts != 0 {
			r.Errorf("%+v, before %+v", got, before)
		}
	})
}

func TestMessage(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("inbox.md", "---\ntitle: Inbox\n---\nIs there anything new?\n")
		r.write()
		r.start()
		m := r.post()
		if m.ID != "heartbeat/946684800000" || m.Type != claybot.MessageSystem || m.Kind != claybot.KindHeartbeat ||
			m.From != (claybot.Sender{Name: "heartbeat"}) || m.At != 946684800000 || m.Text != "Is there anything new?" {
			r.Errorf("message %+v", m)
		}
		if m.Route == nil || *m.Route != *r.route {
			r.Errorf("route %+v", m.Route)
		}
	})
}

func TestRoute(t *testing.T) {
	for _, tc := range []struct {
		setting string
		wrote   bool
		want    *claybot.Route
	}{
		{"", false, nil},
		{"slack/T1/C1", false, &claybot.Route{Connector: "slack", ChannelID: "T1/C1"}},
		{"slack/T1/C1", true, &claybot.Route{Connector: "slack", ChannelID: "T1/C1"}},
		{"slack", false, nil},
		{"slack/", true, &claybot.Route{Connector: "telegram", ChannelID: "4711", UserID: "4711", ThreadID: "7"}},
	} {
		bubble(t, func(r *rig) {
			r.settings.Route = tc.setting
			if tc.wrote {
				r.write()
			}
			r.file("a.md", "look")
			r.start()
			got := r.post().Route
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				r.Errorf("route %q, a person wrote %v: %+v, want %+v", tc.setting, tc.wrote, got, tc.want)
			}
		})
	}
}

func TestSeveralTasksAreOneMessage(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("c.md", "---\nname: Beta\n---\nsecond")
		r.file("b.md", "---\ntitle: Beta\n---\nfirst\n\nin two lines")
		r.file("z.md", "# Alpha #\n\nof the heading")
		r.file("off.md", "---\nenabled: no\n---\nnever")
		r.start()
		r.wantTexts("3 tasks are due.\n\n1. Alpha (z)\n\n# Alpha #\n\nof the heading\n\n2. Beta (b)\n\nfirst\n\nin two lines\n\n3. Beta (c)\n\nsecond")
		r.pass(time.Minute)
		for _, b := range r.heartbeats() {
			if b.Enabled && !b.LastRun.Equal(r.began) {
				r.Errorf("%s ran at %v", b.ID, b.LastRun)
			}
		}
	})
}

// What does not fit into one message comes with the next.
func TestLongTasks(t *testing.T) {
	bubble(t, func(r *rig) {
		long := strings.Repeat("x", 60_000)
		r.file("a.md", long)
		r.file("b.md", "b"+long)
		r.file("c.md", "small")
		r.start()
		r.pass(time.Minute)
		r.wantTexts(long, "2 tasks are due.\n\n1. b (b)\n\nb"+long+"\n\n2. c (c)\n\nsmall")
		r.runNow(1, "k") // as many as fit
	})
}

func TestWhenTasksRun(t *testing.T) {
	for _, tc := range []struct {
		name     string
		settings heartbeat.Settings
		files    map[string]string
		takes    time.Duration
		passes   time.Duration
		want     string
	}{
		{"by default every 30 minutes", heartbeat.Settings{}, map[string]string{"a.md": "a"}, 0, 2 * time.Hour, "0 30 60 90 120"},
		{"as configured", heartbeat.Settings{Every: 50 * time.Minute}, map[string]string{"a.md": "a"}, 0, 2 * time.Hour, "0 50 100"},
		{"never below five minutes", heartbeat.Settings{Every: time.Second}, map[string]string{"a.md": "a"}, 0, 12 * time.Minute, "0 5 10"},
		{"nor by a file", heartbeat.Settings{}, map[string]string{"a.md": "---\nevery: 1s\n---\na"}, 0, 12 * time.Minute, "0 5 10"},
		{"each by its own", heartbeat.Settings{}, map[string]string{"a.md": "---\nevery: 45m\n---\na", "b.md": "b"}, 0, 100 * time.Minute, "0 30 45 60 90"},
		{"a run delays nothing", heartbeat.Settings{}, map[string]string{"a.md": "a"}, 7 * time.Minute, 100 * time.Minute, "0 30 60 90"},
		{"ticks during a run are left out", heartbeat.Settings{}, map[string]string{"a.md": "a"}, 40 * time.Minute, 3 * time.Hour, "0 60 120 180"},
		{"a run up to the next tick", heartbeat.Settings{}, map[string]string{"a.md": "a"}, 30 * time.Minute, 2 * time.Hour, "0 60 120"},
		{"what another's run held up comes after it", heartbeat.Settings{}, map[string]string{"a.md": "---\nevery: 1h\n---\na", "b.md": "---\nevery: 90m\n---\nb"}, 40 * time.Minute, 130 * time.Minute, "0 60 100"},
		{"in active hours", heartbeat.Settings{ActiveHours: "01:00-02:00"}, map[string]string{"a.md": "a"}, 0, 4 * time.Hour, "60 90"},
		{"past midnight", heartbeat.Settings{ActiveHours: "23:30-00:40", Every: 40 * time.Minute, Zone: time.FixedZone("", -3600)}, map[string]string{"a.md": "a"}, 0, 4 * time.Hour, "30 70"},
		{"of a zone", heartbeat.Settings{ActiveHours: "02:00-03:00", Zone: time.FixedZone("", 3600)}, map[string]string{"a.md": "a"}, 0, 4 * time.Hour, "60 90"},
		{"of a task, instead of the configured ones", heartbeat.Settings{ActiveHours: "01:00-02:00"}, map[string]string{"a.md": "---\nactive_hours: 3:00 - 03:20\n---\na"}, 0, 4 * time.Hour, "180"},
		{"that cannot be read", heartbeat.Settings{ActiveHours: "at night"}, map[string]string{"a.md": "a"}, 0, time.Hour, "0 30 60"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				for name, text := range tc.files {
					r.file(name, text)
				}
				r.settings, r.takes = tc.settings, tc.takes
				r.start()
				r.pass(tc.passes)
				r.wantTimes(tc.want)
			})
		})
	}
}

// A failed run is a run, whatever it failed of.
func TestFailedRunCounts(t *testing.T) {
	bubble(t, func(r *rig) {
		r.code = "model_error"
		r.file("a.md", "a")
		r.start()
		r.pass(70 * time.Minute)
		r.wantTimes("0 30 60")
	})
}

func TestEditsAreSeen(t *testing.T) {
	const soon = 2 * time.Second
	bubble(t, func(r *rig) {
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			r.Fatal(err)
		}
		r.start()
		r.pass(10 * time.Minute)
		r.file("a.md", "a")
		r.pass(soon)
		r.wantTimes("10")
		r.file("b.md", "b") // one added later is due at once
		r.pass(soon)
		r.wantTexts("a", "b")
		r.file("a.md", "---\nevery: 5m\n---\nquicker")
		r.pass(5*time.Minute - soon)
		r.wantTexts("a", "b", "quicker")
		r.file("a.md", "---\nenabled: false\nevery: 5m\n---\nquicker")
		r.file("b.md", "---\nevery: 6m\n---\nb changed")
		r.pass(3 * time.Minute)
		r.wantTexts("a", "b", "quicker", "b changed")
		if err := os.RemoveAll(r.dir); err != nil {
			r.Fatal(err)
		}
		r.pass(2 * time.Hour)
		r.wantTexts("a", "b", "quicker", "b changed")
		r.file("a.md", "back again")
		r.pass(soon)
		r.wantTexts("a", "b", "quicker", "b changed", "back again")
	})
}

// A file that an editor replaces is the same task.
func TestReplacedFileIsNotNew(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "a")
		r.start()
		r.pass(time.Minute)
		if err := os.Remove(filepath.Join(r.dir, "a.md")); err != nil {
			r.Fatal(err)
		}
		r.pass(time.Minute)
		r.file("a.md", "a again")
		r.pass(27 * time.Minute)
		r.wantTexts("a")
		r.pass(time.Minute)
		r.wantTexts("a", "a again")
	})
}

func TestClockJumps(t *testing.T) {
	for _, tc := range []struct {
		name   string
		jump   time.Duration
		posts  int // within a minute after the jump at minute 40
		passes time.Duration
		later  int // after that time more
	}{
		{"forward", 5 * time.Hour, 3, 28 * time.Minute, 3},
		{"forward, and one more", 5 * time.Hour, 3, 30 * time.Minute, 4},
		{"forward by little", 10 * time.Second, 2, 18 * time.Minute, 2},
		{"back", -5 * time.Minute, 2, 19 * time.Minute, 2},
		{"back, before the last tick", -3 * time.Hour, 2, 28 * time.Minute, 2},
		{"back, and on", -3 * time.Hour, 2, 31 * time.Minute, 3},
		{"years back", -20 * 366 * 24 * time.Hour, 2, 31 * time.Minute, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.file("a.md", "a")
				r.start()
				r.pass(40 * time.Minute) // ticks at 0 and 30
				r.set(func() { r.shift = tc.jump })
				r.pass(time.Minute)
				if got := r.state(); got.posts != tc.posts {
					r.Errorf("%d posts after the jump, want %d", got.posts, tc.posts)
				}
				r.pass(tc.passes)
				if got := r.state(); got.posts != tc.later || got.repeats != 0 {
					r.Errorf("%d posts %v later, want %d; %d repeats", got.posts, tc.passes, tc.later, got.repeats)
				}
			})
		})
	}
}

// A clock that is set back to the very moment of a former tick must not lead to
// the id of that tick.
func TestClockBackHasFreshIDs(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "a")
		r.start()
		r.pass(60 * time.Minute)
		r.set(func() { r.shift = -60 * time.Minute })
		r.pass(61 * time.Minute)
		if got := r.state(); got.posts != 5 || got.repeats != 0 {
			r.Errorf("%+v", got)
		}
	})
}

func TestDowntime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "a")
		r.start()
		r.pass(10 * time.Minute)
		r.restart() // not due
		r.wantTimes("0")
		r.shut()
		r.pass(5 * time.Hour)
		r.start() // overdue ten times over
		r.pass(29 * time.Minute)
		r.wantTimes("0 310")
		r.pass(time.Minute)
		r.wantTimes("0 310 340")
	})
}

// Whatever the process dies of, a tick is posted once, and not again before it is
// due.
func TestDiesAnywhere(t *testing.T) {
	dies := errors.New("dies")
	for _, tc := range []struct {
		name  string
		world func(r *rig)
		away  func(r *rig) // while nothing runs
		want  string       // within 25 minutes
		more  string       // within an hour
	}{
		{"before the post", func(r *rig) { r.refuse = dies }, nil, "1", "1 31 61"},
		{"behind the post", func(r *rig) { r.refuse, r.stored, r.hold = dies, true, true }, nil, "0", "0 30 60"},
		{
			"before the run",
			func(r *rig) { r.hold = true },
			func(r *rig) { r.work.Go(r.run) }, "0", "0 30 60",
		},
		{"before the end of the run was told", func(r *rig) { r.deaf = true }, nil, "0", "0 30 60"},
		{"before the end of a failed run was told", func(r *rig) { r.deaf, r.code = true, "model_error" }, nil, "0", "0 30 60"},
		{"long ago", func(r *rig) { r.deaf, r.pruned = true, true }, nil, "0", "0 30 60"},
		{"while the run goes on", func(r *rig) { r.takes = 20 * time.Minute }, nil, "0", "0 30 60"},
		{
			"while the message is dropped",
			func(r *rig) { r.hold = true },
			func(r *rig) {
				if dropped, err := r.db.Drop(r.Context(), r.agent, "deleted"); len(dropped) != 1 || err != nil {
					r.Errorf("dropped %v, %v", dropped, err)
				}
			}, "0", "0 30 60",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.file("a.md", "a")
				tc.world(r)
				var once bool
				r.onPost = func() {
					if !once {
						once = true
						r.set(func() { r.dead = true }) // from now on nothing is written
						r.work.Go(r.shut)
					}
				}
				r.start()
				r.pass(time.Minute)
				r.set(func() {
					if r.stop != nil {
						r.Fatal("still running")
					}
					r.refuse, r.deaf, r.code, r.dead = nil, false, "", false
				})
				if tc.away != nil {
					tc.away(r)
					synctest.Wait()
				} else if r.hold && r.state().posts == 1 {
					r.work.Go(func() { time.Sleep(time.Minute); r.run() })
				}
				r.set(func() { r.hold = false })
				r.start()
				r.pass(25 * time.Minute)
				r.wantTimes(tc.want)
				r.pass(35 * time.Minute)
				r.wantTimes(tc.more)
				if got := r.state(); got.repeats != 0 {
					r.Errorf("%d repeats", got.repeats)
				}
			})
		})
	}
}

// Ends that are not reported are found out.
func TestEndNobodyTells(t *testing.T) {
	bubble(t, func(r *rig) {
		r.deaf = true
		r.file("a.md", "a")
		r.start()
		r.pass(65 * time.Minute)
		r.wantTimes("0 30 60")
		if got := r.state(); got.receipts > 4 {
			r.Errorf("asked %d times", got.receipts)
		}
	})
}

// Ends of other runs mean nothing.
func TestForeignEnd(t *testing.T) {
	bubble(t, func(r *rig) {
		r.hold = true
		r.file("a.md", "a")
		r.start()
		r.heart.Ended(claybot.Descriptor{Type: claybot.AgentHeartbeat}, claybot.Run{Messages: []claybot.MessageID{"heartbeat/1", "other"}, State: claybot.RunSucceeded})
		r.pass(2 * time.Second)
		if b := r.heartbeats(); !b[0].LastRun.IsZero() {
			r.Errorf("ran at %v", b[0].LastRun)
		}
		r.pass(2 * time.Hour) // the message still waits
		r.wantTimes("0")
		r.runNow(0, "k") // nor does anything run beside it
		r.wantTimes("0")
	})
}

// A store that refuses for a while costs no tick, and is not stormed.
func TestPostFails(t *testing.T) {
	bubble(t, func(r *rig) {
		tries := 0
		r.onPost = func() { r.set(func() { tries++ }) }
		r.refuse = storage.ErrBusy
		r.file("a.md", "a")
		r.start()
		r.pass(10 * time.Minute)
		if h := r.heart.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "busy") {
			r.Errorf("health %+v", h)
		}
		r.set(func() {
			if tries < 10 || tries > 20 {
				r.Errorf("%d tries", tries)
			}
			r.refuse = nil
		})
		r.wantTimes("")
		r.pass(2 * time.Minute)
		if h := r.heart.Health(); h.State != connectors.StateLive || r.state().posts != 1 {
			r.Errorf("%d posts, health %+v", r.state().posts, h)
		}
	})
}

func TestPlaceFails(t *testing.T) {
	bubble(t, func(r *rig) {
		r.placeErr = storage.ErrBusy
		r.file("a.md", "a")
		r.start()
		r.pass(3 * time.Second)
		if h := r.heart.Health(); h.State != connectors.StateFailing || r.state().posts != 0 {
			r.Errorf("%d posts, health %+v", r.state().posts, h)
		}
		r.file("a.md", "---\nenabled: false\n---\na") // nothing is due, so nothing fails
		r.pass(2 * time.Minute)
		if h := r.heart.Health(); h.State != connectors.StateLive || r.state().posts != 0 {
			r.Errorf("%d posts, health %+v", r.state().posts, h)
		}
	})
}

func TestFolderCannotBeRead(t *testing.T) {
	bubble(t, func(r *rig) {
		if err := os.WriteFile(r.dir, nil, 0o600); err != nil {
			r.Fatal(err)
		}
		r.start()
		r.pass(time.Hour)
		if h := r.heart.Health(); h.State != connectors.StateFailing || h.Err == "" {
			r.Errorf("health %+v", h)
		}
		if n := strings.Count(r.log.String(), "WARN"); n != 1 {
			r.Errorf("%d warnings", n)
		}
		if err := os.Remove(r.dir); err != nil {
			r.Fatal(err)
		}
		r.file("a.md", "a")
		r.pass(2 * time.Second)
		r.wantTexts("a")
	})
}

// What cannot be understood of the past is no reason to stand still.
func TestOddMemory(t *testing.T) {
	for _, mark := range []string{
		"{", "[]", "null", `{"tasks":null,"pending":null}`, `{"tasks":{"a":null}}`, `{"pending":{"id":"heartbeat/1","at":1,"tasks":["gone"]}}`,
		`{"pending":{}}`, `{"tasks":{"a":{"last":-5,"ended":-9223372036854775808}}}`, `{"tick":9223372036854775807}`, `{"beats":-3,"word":77}`,
	} {
		bubble(t, func(r *rig) {
			if err := r.db.SetCheckpoint(r.Context(), "heartbeat", mark); err != nil {
				r.Fatal(err)
			}
			r.file("a.md", "a")
			r.start()
			r.pass(40 * time.Minute)
			if got := r.times(); got != "0 30" {
				r.Errorf("%s: ticks at %q", mark, got)
			}
		})
	}
	bubble(t, func(r *rig) { // years ahead
		if err := r.db.SetCheckpoint(r.Context(), "heartbeat", `{"tasks":{"a":{"last":9223372036854775807,"ended":9223372036854775807}}}`); err != nil {
			r.Fatal(err)
		}
		r.file("a.md", "a")
		r.start()
		r.pass(40 * time.Minute)
		r.wantTimes("30")
	})
}
