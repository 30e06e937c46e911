package heartbeat_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/storage"
)

func TestManualTick(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "---\ntitle: Z\n---\na")
		r.file("b.md", "b")
		r.file("off.md", "---\nenabled: false\n---\noff")
		r.file("night.md", "---\nactive_hours: 03:00-04:00\n---\nnight")
		r.start()
		r.pass(10 * time.Minute)
		r.wantTexts("2 tasks are due.\n\n1. Z (a)\n\na\n\n2. b (b)\n\nb")
		r.set(func() { r.posts = nil })
		r.runNow(1, "one", "a", "a")
		r.runNow(1, "off", "off")
		r.runNow(3, "all")
		r.runNow(1, "one", "a") // again
		r.runNow(3, "all")
		r.wantTexts("a", "off", "3 tasks are due.\n\n1. Z (a)\n\na\n\n2. b (b)\n\nb\n\n3. night (night)\n\nnight")
		r.set(func() {
			for i, want := range []string{"one", "off", "all"} {
				if got := r.posts[i].ID; string(got) != "heartbeat/manual/"+want {
					r.Errorf("id %q", got)
				}
			}
			r.posts = nil
		})
		for _, ids := range [][]string{{"none"}, {"a", "none"}, {""}, {"../a"}} {
			if _, err := r.heart.RunHeartbeats(r.Context(), "k", ids...); !errors.Is(err, storage.ErrNotFound) {
				r.Errorf("ids %q: %v", ids, err)
			}
		}
		if _, err := r.heart.RunHeartbeats(r.Context(), " "); err == nil {
			r.Error("no key, and no error")
		}
		r.restart()
		r.runNow(1, "one", "a") // again, also in another process
		r.wantTexts()
		r.pass(31 * time.Minute) // what was done by hand is done
		r.wantTimes("40")
	})
}

func TestManualTickWhileBusy(t *testing.T) {
	bubble(t, func(r *rig) {
		r.takes = 10 * time.Minute
		r.file("a.md", "a")
		r.start()
		r.pass(time.Minute)
		r.runNow(0, "k") // during a run
		r.pass(10 * time.Minute)
		r.runNow(1, "k")
		r.runNow(1, "k") // under way
		r.runNow(0, "l")
		r.pass(25 * time.Minute)
		r.wantTimes("0 11")
		r.pass(10 * time.Minute)
		r.wantTimes("0 11 41")
	})
}

func TestManualTickCannotBePosted(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "---\nenabled: false\n---\na")
		r.start()
		r.runNow(0, "none")
		r.set(func() { r.refuse = storage.ErrBusy })
		if n, err := r.heart.RunHeartbeats(r.Context(), "k", "a"); n != 0 || !errors.Is(err, storage.ErrBusy) {
			r.Errorf("%d, %v", n, err)
		}
		if n, err := r.heart.RunHeartbeats(r.Context(), "k", "a"); n != 0 || !errors.Is(err, storage.ErrBusy) {
			r.Errorf("again: %d, %v", n, err)
		}
		r.set(func() { r.stored = true })
		if n, err := r.heart.RunHeartbeats(r.Context(), "k", "a"); n != 0 || !errors.Is(err, storage.ErrBusy) {
			r.Errorf("stored: %d, %v", n, err)
		}
		r.set(func() { r.refuse = nil })
		r.runNow(1, "k", "a")
		r.pass(time.Minute)
		r.runNow(1, "k", "a")
		r.wantTexts("a")
	})
}

// A new file is listed at once.
func TestHeartbeatsSeesNewFiles(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings.Zone = time.FixedZone("X", 3600)
		r.start()
		if all := r.heartbeats(); len(all) != 0 {
			r.Errorf("%+v", all)
		}
		r.file("a.md", "---\nname: Zoo\nevery: 2h\nactive_hours: 10:00-12:00\nwhen: 'true'\n---\na")
		r.file("b.md", "b")
		want := connectors.HeartbeatTask{
			ID: "a", Title: "Zoo", Every: "2h", ActiveHours: "10:00-12:00", Enabled: true, Prompt: "a", Gate: "true",
			Next: time.Date(2000, 1, 1, 10, 0, 0, 0, r.settings.Zone),
		}
		if all := r.heartbeats(); len(all) != 2 || all[0] != want || all[1].ID != "b" {
			r.Errorf("%+v, want %+v first", all, want)
		}
	})
}

func TestProblems(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("every.md", "---\ntitle: x\nevery: soon\n---\na")
		r.file("UP.md", "a")
		r.file(".dot.md", "a")
		r.file("open.md", "---\ntitle: x\na")
		r.file("gate.md", "---\ngate: ./check.sh\nmodel: x\n---\na")
		r.file("long.md", strings.Repeat("a", 64<<10+1))
		r.file("short.md", "---\nevery: 1m\n---\na")
		if err := os.Mkdir(filepath.Join(r.dir, "folder.md"), 0o700); err != nil {
			r.Fatal(err)
		}
		for name, to := range map[string]string{"out.md": "/etc/hostname", "nowhere.md": "nothing", "in.md": "short.md"} {
			if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
				r.Fatal(err)
			}
		}
		r.start()
		const rule = "use at most 64 of a-z, 0-9, dots, - and _, and no dot at the beginning"
		want := strings.Join([]string{
			`.dot.md:0: the name: invalid id ".dot": ` + rule,
			`UP.md:0: the name: invalid id "UP": ` + rule,
			`every.md:3: every: "soon" is not a duration such as 30m, 2h or 1d`,
			`folder.md:0: it is not a regular file`,
			`gate.md:2: the setting gate is not known and has no effect`,
			`gate.md:3: the setting model is not known and has no effect`,
			`in.md:2: every: 1m is too short: want at least 5m; it runs every 5m`,
			`long.md:0: the file is longer than 64 KiB`,
			`open.md:1: the front matter has no closing line ---`,
			`out.md:0: path escapes from parent`,
			`short.md:2: every: 1m is too short: want at least 5m; it runs every 5m`,
		}, "\n")
		if got := r.problems(); got != want {
			r.Errorf("problems\n%s\nwant\n%s", got, want)
		}
		var ids []string
		for _, b := range r.heartbeats() {
			ids = append(ids, b.ID)
		}
		if want := []string{"gate", "in", "short"}; !slices.Equal(ids, want) {
			r.Errorf("tasks %q, want %q", ids, want)
		}
		r.pass(time.Minute)
		if n := strings.Count(r.log.String(), "WARN"); n != 11 {
			r.Errorf("%d warnings, want each problem once", n)
		}
		if h := r.heart.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, "10 heartbeat files have problems") {
			r.Errorf("health %+v", h)
		}
	})
}

func TestAddHeartbeat(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		added, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{
			Title: " Mail &\nnews ", Every: "2h", ActiveHours: "08:00-20:00", Enabled: true, Prompt: "---\nIs there \xff anything?\x00\n",
		})
		want := connectors.HeartbeatTask{
			ID: "mail-news", Title: "Mail & news", Every: "2h", ActiveHours: "08:00-20:00", Enabled: true, Prompt: "---\nIs there \uFFFD anything?",
			Next: time.Date(2000, 1, 1, 8, 0, 0, 0, time.UTC),
		}
		if err != nil || added != want {
			r.Errorf("added %+v, %v, want %+v", added, err, want)
		}
		if all := r.heartbeats(); len(all) != 1 || all[0] != want {
			r.Errorf("there is %+v, want %+v", all, want)
		}
		info, err := os.Stat(filepath.Join(r.dir, "mail-news.md"))
		if err != nil || info.Mode() != 0o600 {
			r.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
		if info, err := os.Stat(r.dir); err != nil || info.Mode().Perm() != 0o700 {
			r.Errorf("the folder has mode %v, %v", info.Mode(), err)
		}
		for _, want := range []string{"mail-news-2", "mail-news-3"} {
			if b, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{Title: "Mail & News", Prompt: "x"}); err != nil || b.ID != want || b.Enabled {
				r.Errorf("made %+v, %v", b, err)
			}
		}
		for _, tc := range []struct{ title, prompt, id string }{
			{"", "# Über alles!\nx", "ber-alles"},
			{"", "x", "task"},
			{"…", "x", "task-2"},
			{strings.Repeat("a", 100), "x", strings.Repeat("a", 64)},
			{strings.Repeat("a", 100), "x", strings.Repeat("a", 62) + "-2"},
			{"..a.b..", "x", "a.b"},
			{"true", "x", "true"},
		} {
			if b, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{Title: tc.title, Prompt: tc.prompt}); err != nil || b.ID != tc.id {
				r.Errorf("title %.20q: id %q, %v, want %q", tc.title, b.ID, err, tc.id)
			}
		}
		entries, err := os.ReadDir(r.dir)
		if err != nil || len(entries) != len(r.heartbeats()) {
			r.Errorf("%d files, %v", len(entries), err)
		}
	})
}

func TestAddHeartbeatReplaces(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "---\nwhen: 'true'\nevery: never\n---\na") // with a mistake
		r.start()
		r.settings.Gates = true
		b, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{ID: "a", Title: "A", Prompt: "new", Enabled: true})
		if err != nil || b.Gate != "true" || b.Title != "A" {
			r.Errorf("replaced by %+v, %v: the gate must stay", b, err)
		}
		synctest.Wait()
		r.wantTexts("new") // at once
		r.pass(time.Minute)
		b, err = r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{ID: "a", Prompt: "newer", Enabled: true, Gate: "exit 0"})
		if err != nil || b.Gate != "exit 0" || b.LastRun.IsZero() || b.Title != "a" {
			r.Errorf("replaced by %+v, %v", b, err)
		}
		r.pass(28 * time.Minute)
		r.wantTexts("new")
		r.pass(time.Minute)
		r.wantTexts("new", "newer")
	})
}

func TestAddHeartbeatRefuses(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		for _, tc := range []struct {
			task connectors.HeartbeatTask
			want string
		}{
			{connectors.HeartbeatTask{Title: "x"}, "the prompt is empty"},
			{connectors.HeartbeatTask{Title: "x", Prompt: " \n"}, "the prompt is empty"},
			{connectors.HeartbeatTask{Prompt: "x", Every: "4m59s"}, "every: 4m59s is too short: want at least 5m"},
			{connectors.HeartbeatTask{Prompt: "x", Every: "0"}, "every: 0 is too short: want at least 5m"},
			{connectors.HeartbeatTask{Prompt: "x", Every: "-1h"}, `every: "-1h" is not a duration such as 30m, 2h or 1d`},
			{connectors.HeartbeatTask{Prompt: "x", Every: "10"}, `every: "10" is not a duration such as 30m, 2h or 1d`},
			{connectors.HeartbeatTask{Prompt: "x", Every: "400d"}, "every: 400d is too long: want at most a year"},
			{connectors.HeartbeatTask{Prompt: "x", ActiveHours: "8-22"}, `active_hours: "8-22" is not of the form 08:00-22:00`},
			{connectors.HeartbeatTask{Prompt: "x", ActiveHours: "08:00-25:00"}, `active_hours: "08:00-25:00" holds a time that no clock shows`},
			{connectors.HeartbeatTask{Prompt: "x", ID: "../x"}, `invalid id "../x"`},
			{connectors.HeartbeatTask{Prompt: "x", ID: ".x"}, `invalid id ".x"`},
			{connectors.HeartbeatTask{Prompt: "x", ID: "a/b"}, `invalid id "a/b"`},
			{connectors.HeartbeatTask{Prompt: "x", ID: "a\x00"}, `invalid id "a\x00"`},
			{connectors.HeartbeatTask{Prompt: "x", ID: "A"}, `invalid id "A"`},
			{connectors.HeartbeatTask{Prompt: "x", ID: strings.Repeat("a", 65)}, "invalid id"},
			{connectors.HeartbeatTask{Prompt: strings.Repeat("x", 64<<10)}, "the task is longer than 64 KiB"},
		} {
			_, err := r.heart.AddHeartbeat(r.Context(), tc.task)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				r.Errorf("%.100v: error %v, want %q", tc.task, err, tc.want)
			}
		}
		if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
			r.Errorf("something was made: %v", err)
		}
	})
}

func TestTooManyTasks(t *testing.T) {
	bubble(t, func(r *rig) {
		for i := range 201 {
			r.file("t"+string(rune('a'+i/26))+string(rune('a'+i%26))+".md", "---\nenabled: false\n---\nx")
		}
		r.start()
		if n := len(r.heartbeats()); n != 200 {
			r.Errorf("%d tasks", n)
		}
		if got := r.problems(); got != "ths.md:0: there are more than 200 tasks, and this one is not looked at" {
			r.Errorf("problems %s", got)
		}
		if _, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{Title: "x", Prompt: "x"}); err == nil || !strings.Contains(err.Error(), "200 tasks") {
			r.Errorf("one more: %v", err)
		}
		if _, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{ID: "taa", Prompt: "x"}); err != nil {
			r.Errorf("replacing one: %v", err)
		}
	})
}

func TestRemoveHeartbeat(t *testing.T) {
	bubble(t, func(r *rig) {
		r.takes = time.Minute
		r.file("a.md", "a")
		r.file("b.md", "---\nevery: soon\n---\nb")
		r.start() // and a is under way
		for _, id := range []string{"none", "", "../a", ".", "a.md"} {
			if err := r.heart.RemoveHeartbeat(r.Context(), id); !errors.Is(err, storage.ErrNotFound) {
				r.Errorf("%q: %v", id, err)
			}
		}
		for _, id := range []string{"a", "b"} { // also one with a mistake
			if err := r.heart.RemoveHeartbeat(r.Context(), id); err != nil {
				r.Errorf("%q: %v", id, err)
			}
		}
		if err := r.heart.RemoveHeartbeat(r.Context(), "a"); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("twice: %v", err)
		}
		r.pass(3 * time.Hour)
		r.wantTexts("a")
		// Another one of the same name has never run.
		if _, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{ID: "a", Prompt: "another", Enabled: true}); err != nil {
			r.Error(err)
		}
		synctest.Wait()
		r.wantTexts("a", "another")
		r.pass(2 * time.Minute) // and when that one has run, neither has the next
		if err := r.heart.RemoveHeartbeat(r.Context(), "a"); err != nil {
			r.Error(err)
		}
		if _, err := r.heart.AddHeartbeat(r.Context(), connectors.HeartbeatTask{ID: "a", Prompt: "the third", Enabled: true}); err != nil {
			r.Error(err)
		}
		synctest.Wait()
		r.wantTexts("a", "another", "the third")
	})
}

// What is known of tasks that are gone does not pile up.
func TestForgetsTasksThatAreGone(t *testing.T) {
	bubble(t, func(r *rig) {
		ago := func(d time.Duration) string { return strconv.FormatInt(r.began.Add(-d).UnixMilli(), 10) }
		mark := `{"tasks":{"old":{"last":` + ago(25*time.Hour) + `},"young":{"last":` + ago(23*time.Hour) + `}}}`
		if err := r.db.SetCheckpoint(r.Context(), "heartbeat", mark); err != nil {
			r.Fatal(err)
		}
		r.file("a.md", "a")
		r.start()
		r.pass(time.Minute)
		mark, err := r.db.Checkpoint(r.Context(), "heartbeat")
		if err != nil || strings.Contains(mark, `"old"`) || !strings.Contains(mark, `"young"`) || !strings.Contains(mark, `"a"`) {
			r.Errorf("remembers %s, %v", mark, err)
		}
	})
}

// Before Run and behind it there is nothing to look at, and nothing hangs.
func TestNotRunning(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		r.shut()
		fresh := heartbeat.New(heartbeat.Config{Dir: r.dir, Receipts: r.db})
		for _, h := range []*heartbeat.Heartbeat{r.heart, fresh} {
			_, _, err := h.Heartbeats(r.Context())
			if _, err2 := h.AddHeartbeat(r.Context(), connectors.HeartbeatTask{Prompt: "x"}); err == nil || err2 == nil {
				r.Errorf("Heartbeats %v, AddHeartbeat %v", err, err2)
			}
			if _, err := h.RunHeartbeats(r.Context(), "k"); err == nil {
				r.Error("RunHeartbeats worked")
			}
			if err := h.RemoveHeartbeat(r.Context(), "a"); err == nil {
				r.Error("RemoveHeartbeat worked")
			}
		}
		if h := fresh.Health(); h.State != connectors.StateStarting || fresh.Name() != "heartbeat" {
			r.Errorf("%s: health %+v", fresh.Name(), h)
		}
		r.start()
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		_, _, err := r.heart.Heartbeats(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			r.Errorf("canceled: %v", err)
		}
	})
}

// Without anything but what is needed.
func TestBareConfig(t *testing.T) {
	bubble(t, func(r *rig) {
		r.file("a.md", "a")
		ctx, cancel := context.WithCancel(context.Background())
		r.heart = heartbeat.New(heartbeat.Config{Dir: r.dir, Tree: r.tree(), Claims: r.db, Node: func() string { return "alone" }, Receipts: r.db})
		ended := make(chan error, 1)
		go func() { ended <- r.heart.Run(ctx, r) }()
		r.pass(time.Hour)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.Errorf("Run returned %v", err)
		}
		if got := r.state(); got.posts != 3 {
			r.Errorf("%d posts", got.posts)
		}
	})
}
