package cron_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
)

func ptr[T any](v T) *T { return &v }

func TestTools(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx := r.t.Context()
		if _, _, err := r.startless().Tasks(ctx); err == nil {
			t.Error("tasks without Run")
		}
		r.start()
		pass(time.Second)
		spec := connectors.TaskSpec{
			Name: "Morning report", Schedule: "0 9 * * 1-5", Timezone: "Europe/Berlin", Prompt: "---\nReport: \"all\"\n---",
			Owner: "telegram/1", Route: "telegram/1", Description: "line 1\nline: 2", Retries: 2,
		}
		would, err := r.cron.Add(ctx, spec, true)
		if err != nil || len(would.Next) != 5 || would.Next[0].Format(time.RFC3339) != "2000-01-03T09:00:00+01:00" {
			t.Errorf("preview %v, %v", would, err)
		}
		if r.exists("morning-report") {
			t.Error("a preview has made a task")
		}
		a, err := r.cron.Add(ctx, spec, false)
		if err != nil {
			t.Fatal(err)
		}
		if a.Slug != "morning-report" || claybot.AgentID(a.UID).Validate() != nil || a.TaskSpec != spec || !a.Enabled || len(a.Next) != 5 {
			t.Errorf("added %+v", a)
		}
		b, err := r.cron.Add(ctx, spec, false)
		if err != nil || b.Slug != "morning-report-2" || b.UID == a.UID {
			t.Errorf("added %+v, %v", b, err)
		}
		for name, mode := range map[string]fs.FileMode{"": 0o700, "TASK.md": 0o600, "MEMORY.md": 0o600, "files": 0o700} {
			info, err := os.Stat(filepath.Join(r.dir, a.Slug, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%q: %v, %v, want mode %v", name, info, err, mode)
			}
		}
		c, err := r.cron.Change(ctx, a.Slug, connectors.TaskChange{Every: ptr("1h"), Prompt: ptr("New"), Enabled: ptr(false), Route: ptr(""), Retries: ptr(0)})
		if err != nil || c.Every != "1h" || c.Schedule != "" || c.Prompt != "New" || c.Enabled || c.Route != "" || c.Retries != 0 || len(c.Next) != 0 || c.UID != a.UID {
			t.Errorf("changed %+v, %v", c, err)
		}
		c, err = r.cron.Change(ctx, a.UID, connectors.TaskChange{Enabled: ptr(true), Once: ptr(true)})
		if err != nil || len(c.Next) != 5 || !c.Next[0].Equal(time.Now().Add(time.Hour)) || !c.Once {
			t.Errorf("changed %+v, %v", c, err)
		}
		pass(time.Hour)
		if len(r.posts) != 1 {
			t.Errorf("fired %v", r.fired())
		}
		if err := r.cron.Remove(ctx, b.UID); err != nil {
			t.Error(err)
		}
		if err := r.cron.Remove(ctx, b.UID); err == nil {
			t.Error("removed twice")
		}
		done, err := filepath.Glob(filepath.Join(r.dir, ".done", "morning-report-2-20000101T*"))
		if err != nil || len(done) != 1 || r.exists(b.Slug) {
			t.Errorf("done %v, %v", done, err)
		}
	})
}

// startless is a Cron that does not run.
func (r *rig) startless() *cron.Cron { return newCron(r.cfg) }

func TestRefusedTasks(t *testing.T) {
	bubble(t, func(r *rig) {
		r.cfg.Known = func(name string) bool { return name == "telegram" }
		r.start()
		pass(time.Second)
		for _, c := range []struct {
			change func(*connectors.TaskSpec)
			want   string
		}{
			{func(s *connectors.TaskSpec) { s.Schedule = "0 9 31 2 *" }, `schedule: "0 9 31 2 *" never comes`},
			{func(s *connectors.TaskSpec) { s.Schedule = "0 9 * *" }, "has 4 fields"},
			{func(s *connectors.TaskSpec) { s.Schedule = "0 25 * * *" }, "field 2 (hour): 25 is not"},
			{func(s *connectors.TaskSpec) { s.Every = "1h" }, "schedule and every"},
			{func(s *connectors.TaskSpec) { s.Schedule = "" }, "one of schedule, every and at is missing"},
			{func(s *connectors.TaskSpec) { s.Schedule, s.At = "", "1999-01-01T00:00:00Z" }, `at: "1999-01-01T00:00:00Z" is in the past`},
			{func(s *connectors.TaskSpec) { s.Timezone = "Nowhere" }, `timezone: "Nowhere" is not an IANA zone`},
			{func(s *connectors.TaskSpec) { s.Misfire = "always" }, `misfire: "always"`},
			{func(s *connectors.TaskSpec) { s.Retries = 11 }, "retries: 11"},
			{func(s *connectors.TaskSpec) { s.Retries = -1 }, "retries: -1"},
			{func(s *connectors.TaskSpec) { s.Name = " \n" }, "name is empty"},
			{func(s *connectors.TaskSpec) { s.Prompt = " " }, "the prompt is empty"},
			{func(s *connectors.TaskSpec) { s.Prompt = strings.Repeat("x", 300<<10) }, "longer than 256 KiB"},
			{func(s *connectors.TaskSpec) { s.Route = "slack/T1/C1" }, `no connector "slack" is configured`},
			{func(s *connectors.TaskSpec) { s.Route = "agent:" + uid("nobody") }, "route: there is no agent"},
			{func(s *connectors.TaskSpec) { s.Agent = uid("nobody") }, "agent: there is no agent"},
			{func(s *connectors.TaskSpec) { s.Agent = "x/y" }, "agent: agent id"},
			{func(s *connectors.TaskSpec) { s.Owner = "me" }, `owner: "me"`},
		} {
			s := connectors.TaskSpec{Name: "n", Schedule: "0 9 * * *", Prompt: "p", Route: "telegram/1"}
			c.change(&s)
			if _, err := r.cron.Add(r.t.Context(), s, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q", s, err, c.want)
			}
			if _, err := r.cron.Add(r.t.Context(), s, true); err == nil {
				t.Errorf("%+v: previewed", s)
			}
		}
		r.is(r.slugs())
		for _, ref := range []string{"", ".", "..", "../x", "a/b", uid("x"), ".done"} {
			_, change := r.cron.Change(r.t.Context(), ref, connectors.TaskChange{})
			_, run := r.cron.RunNow(r.t.Context(), ref, "k")
			_, memory := r.cron.Memory(r.t.Context(), ref)
			for what, err := range map[string]error{"change": change, "run": run, "remove": r.cron.Remove(r.t.Context(), ref), "memory": memory, "remember": r.cron.Remember(r.t.Context(), ref, "x", true)} {
				if err == nil || !strings.Contains(err.Error(), "there is no task") {
					t.Errorf("%s %q: %v", what, ref, err)
				}
			}
		}
	})
}

// What a change does not name stays, the gate and unknown settings too.
func TestChangeKeeps(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write("a", taskText("a", "every: 1h", "gate:", "  command: ./x", "  timeout: 5s", "model: m", "deleteAfterRun: true"))
		r.start()
		pass(time.Second)
		v, err := r.cron.Change(r.t.Context(), "a", connectors.TaskChange{Name: ptr("New"), Once: ptr(false)})
		if err != nil || v.Gate != "./x" || v.Name != "New" || v.Once || v.Slug != "a" {
			t.Errorf("changed %+v, %v", v, err)
		}
		b, err := os.ReadFile(filepath.Join(r.dir, "a", "TASK.md"))
		if err != nil || !strings.Contains(string(b), "model: m") || strings.Contains(string(b), "deleteAfterRun") {
			t.Errorf("file %s, %v", b, err)
		}
		if _, err := r.cron.Change(r.t.Context(), "a", connectors.TaskChange{Schedule: ptr("99 * * * *")}); err == nil {
			t.Error("a bad change was taken")
		}
		after, err := os.ReadFile(filepath.Join(r.dir, "a", "TASK.md"))
		if err != nil || string(after) != string(b) {
			t.Errorf("a refused change has changed the file to %s, %v", after, err)
		}
	})
}

func TestMemory(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx := r.t.Context()
		r.write("a", taskText("a", "schedule: '* * * * *'"))
		r.start()
		pass(time.Second)
		want := func(text string) {
			t.Helper()
			if got, err := r.cron.Memory(ctx, "a"); err != nil || got != text {
				t.Errorf("memory %q, %v, want %q", got, err, text)
			}
		}
		want("No memory")
		for _, c := range []struct {
			text string
			add  bool
			want string
		}{
			{"one", true, "one"},
			{"two\n", true, "one\ntwo"},
			{"three", false, "three"},
			{" ", false, "No memory"},
			{"bad \xff bytes", false, "bad  bytes"},
		} {
			if err := r.cron.Remember(ctx, "a", c.text, c.add); err != nil {
				t.Error(err)
			}
			want(c.want)
		}
		pass(time.Minute)
		if !strings.Contains(r.posts[0].m.Text, "MEMORY.md of the task:\nbad  bytes\n\nDo a.") {
			t.Errorf("text %q", r.posts[0].m.Text)
		}
		if err := r.cron.Remember(ctx, "a", strings.Repeat("x", 16<<10), true); err == nil {
			t.Error("more than 16 KiB were kept")
		}
		if err := os.WriteFile(filepath.Join(r.dir, "a", "MEMORY.md"), []byte(strings.Repeat("y", 20<<10)), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if want := "task:\n" + strings.Repeat("y", 16<<10) + "\n[the rest of MEMORY.md is left out"; !strings.Contains(r.posts[1].m.Text, want) {
			t.Errorf("a long memory is not cut: %d bytes", len(r.posts[1].m.Text))
		}
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(r.dir, "a", "MEMORY.md")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, name); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if len(r.posts) != 3 || strings.Contains(r.posts[2].m.Text, "hunter2") {
			t.Errorf("posts %+v", r.posts[2:])
		}
	})
}

func TestRunNow(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write("a", taskText("a", "schedule: '0 * * * *'", "enabled: false", "once: true"))
		r.start()
		pass(time.Second)
		for _, key := range []string{"k1", "k1", "k2", "a/b 7"} {
			if _, err := r.cron.RunNow(r.t.Context(), "a", key); err != nil {
				t.Errorf("%q: %v", key, err)
			}
		}
		r.is(r.ledger("a"), "manual/k1 SUCCEEDED", "manual/k2 SUCCEEDED", "manual/a/b 7 SUCCEEDED")
		r.end("a", claybot.RunSucceeded)
		pass(time.Hour)
		if len(r.posts) != 3 || !r.exists("a") {
			t.Errorf("fired %v", r.fired())
		}
		rows, err := r.cron.Ledger(r.t.Context(), "a", 2)
		if err != nil || len(rows) != 2 || rows[0].Instant != "manual/a/b 7" {
			t.Errorf("ledger %+v, %v", rows, err)
		}
	})
}

func TestAgentsAndRoutes(t *testing.T) {
	someone := claybot.User("telegram", "7", "8")
	id := claybot.AgentID(uid("someone"))
	for _, c := range []struct {
		name  string
		lines []string
		to    claybot.Descriptor // zero: nothing is posted
		check func(claybot.AgentMessage) bool
	}{
		{"own", nil, claybot.Descriptor{Type: claybot.AgentCron, UID: uid("a"), Name: "a"}, func(m claybot.AgentMessage) bool { return m.Route == nil && m.Report == "" }},
		{"channel", []string{"route: slack/T1/C1/9.9", "owner: slack/U1"}, claybot.Descriptor{Type: claybot.AgentCron, UID: uid("a"), Name: "a", Owner: "slack/U1"}, func(m claybot.AgentMessage) bool {
			return m.Route != nil && *m.Route == claybot.Route{Connector: "slack", ChannelID: "T1/C1", ThreadID: "9.9"}
		}},
		{"report", []string{"route: agent:" + string(id)}, claybot.Descriptor{Type: claybot.AgentCron, UID: uid("a"), Name: "a"}, func(m claybot.AgentMessage) bool { return m.Route == nil && m.Report == id }},
		{"other agent", []string{"agent: " + string(id)}, someone, func(m claybot.AgentMessage) bool { return m.Route == nil }},
		{"other agent, nowhere", []string{"agent: " + string(id), "route: none"}, someone, func(m claybot.AgentMessage) bool { return m.Route != nil && *m.Route == claybot.Route{} }},
		{"unknown agent", []string{"agent: " + uid("nobody")}, claybot.Descriptor{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.agents[id] = someone
				r.write("a", taskText("a", append(c.lines, "schedule: '* * * * *'")...))
				r.start()
				pass(time.Minute)
				if c.check == nil {
					r.is(r.fired())
					r.is(r.ledger("a"), "2000-01-01T00:01:00Z skipped unknown agent "+uid("nobody"))
					return
				}
				if len(r.posts) != 1 || r.posts[0].to != c.to || !c.check(r.posts[0].m) {
					t.Errorf("posts %+v", r.posts)
				}
			})
		})
	}
}
