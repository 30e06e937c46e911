package cron

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
)

const anUID = "abcdefghijklmnopqrstuvwx"

// good is a task file with further settings.
func good(lines ...string) string {
	return "---\nuid: " + anUID + "\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n"
}

func TestDefinitions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int // of the error; 0: none
		want       string
		notes      int
	}{
		{"least", good("schedule: '0 9 * * *'"), 0, "", 0},
		{"alias", strings.Replace(good("every: 1h"), "uid", "taskId", 1), 0, "", 0},
		{"all", good("name: A", "schedule: '@daily'", "timezone: Europe/Berlin", "enabled: no", "description: d", "misfire: run_once", "once: true", "owner: t/1", "route: none", "agent: "+anUID, "gate:", "  command: x", "  timeout: 5s", "retries: 3"), 0, "", 0},
		{"unquoted time", good("at: 2026-12-24T18:00:00+01:00"), 0, "", 0},
		{"short gate", good("every: 1h", "gate: ./x"), 0, "", 0},
		{"unknown", good("every: 1h", "model: x", "tools: y"), 0, "", 2},
		{"windows lines", strings.ReplaceAll(good("every: 1h"), "\n", "\r\n"), 0, "", 0},
		{"no front matter", "Do it.\n", 1, "front matter", 0},
		{"empty file", "", 1, "front matter", 0},
		{"not closed", "---\nuid: x\n", 1, "closing", 0},
		{"no uid", "---\nevery: 1h\n---\nx", 1, "uid is missing", 0},
		{"bad uid", "---\nevery: 1h\nuid: ../../etc\n---\nx", 3, "is not a cuid2", 0},
		{"two uids", good("taskId: "+anUID, "every: 1h"), 3, "same setting", 0},
		{"no times", good("name: x"), 1, "one of schedule, every and at", 0},
		{"two times", good("every: 1h", "at: 2026-12-24T18:00:00Z"), 4, "want one of", 0},
		{"bad schedule", good("schedule: '61 * * * *'"), 3, "schedule: \"61 * * * *\": field 1 (minute)", 0},
		{"never", good("name: x", "schedule: '0 0 31 2 *'"), 4, "never comes", 0},
		{"31 February or Monday", good("schedule: '0 0 31 2 1'"), 0, "", 0},
		{"zone alone", good("schedule: TZ=UTC"), 3, "field of its own", 0},
		{"bad every", good("every: soon"), 3, "every: \"soon\"", 0},
		{"short every", good("every: 10ms"), 3, "too short", 0},
		{"bad at", good("at: 2026-02-30T00:00:00Z"), 3, "no such day", 0},
		{"bad zone", good("every: 1h", "timezone: Mars/Base"), 4, "not an IANA zone", 0},
		{"zone of the machine", good("every: 1h", "timezone: Local"), 4, "not an IANA zone", 0},
		{"bad zone and at", good("at: 2026-12-24 18:00", "timezone: ../x"), 4, "not an IANA zone", 0},
		{"bad flag", good("every: 1h", "enabled: maybe"), 4, "enabled: \"maybe\"", 0},
		{"bad misfire", good("every: 1h", "misfire: later"), 4, "misfire", 0},
		{"bad retries", good("every: 1h", "retries: 11"), 4, "retries", 0},
		{"bad owner", good("every: 1h", "owner: me"), 4, "owner", 0},
		{"bad route", good("every: 1h", "route: nowhere"), 4, "route", 0},
		{"bad route agent", good("every: 1h", "route: agent:x"), 4, "route", 0},
		{"bad agent", good("every: 1h", "agent: me"), 4, "agent", 0},
		{"bad gate time", good("every: 1h", "gate:", "  timeout: 2h"), 5, "gate.timeout", 0},
		{"no prompt", "---\nuid: " + anUID + "\nevery: 1h\n---\n\n", 4, "prompt is empty", 0},
		{"list", good("every: [1h]"), 3, "single value", 0},
		{"no yaml", good("every: 'x"), 3, "", 0},
		{"not UTF-8", "---\nuid: x\n\xff\n---\n", 3, "not UTF-8", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, notes, err := readDefinition(c.text, time.UTC)
			var line *configs.LineError
			switch {
			case c.line == 0 && err != nil:
				t.Errorf("error %v", err)
			case c.line == 0 && (d.uid != anUID || len(notes) != c.notes):
				t.Errorf("uid %q, notes %v", d.uid, notes)
			case c.line != 0 && (!errors.As(err, &line) || line.Line != c.line && c.name != "no yaml" || !strings.Contains(line.Text, c.want)):
				t.Errorf("error %v, want line %d with %q", err, c.line, c.want)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	place := func(connector, channel, thread string) target {
		return target{place: claybot.Route{Connector: connector, ChannelID: channel, ThreadID: thread}}
	}
	for _, c := range []struct {
		text string
		want target
		ok   bool
	}{
		{"", target{}, true},
		{"none", target{nowhere: true}, true},
		{"agent:" + anUID, target{agent: anUID}, true},
		{"telegram/4711", place("telegram", "4711", ""), true},
		{"telegram/-1004711/99", place("telegram", "-1004711", "99"), true},
		{"telegram:4711", place("telegram", "4711", ""), true},
		{"slack/T1/C1", place("slack", "T1/C1", ""), true},
		{"slack/T0ABC9/D0XYZ7/1712.0001", place("slack", "T0ABC9/D0XYZ7", "1712.0001"), true},
		{"slack:T1/C1", place("slack", "T1/C1", ""), true},
		{"web/main", place("web", "main", ""), true},
		{"telegram", target{}, false},
		{"telegram/", target{}, false},
		{"/4711", target{}, false},
		{"telegram//4711", target{}, false},
		{"telegram/47 11", target{}, false},
		{"agent:", target{}, false},
		{"agent:../x", target{}, false},
	} {
		got, err := parseRoute(c.text)
		if (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%q: %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
}

// FuzzTask wants that reading a task file never panics, that what is accepted can
// be planned, and that a change keeps what it does not name.
func FuzzTask(f *testing.F) {
	f.Add("---\nuid: " + anUID + "\nschedule: '0 9 * * 1-5'\ntimezone: Europe/Berlin\n---\nDo it.\n")
	f.Add("---\nuid: " + anUID + "\nat: 2026-12-24T18:00:00+01:00\ngate:\n  command: x\n---\nDo it.\n")
	f.Add("---\nuid: " + anUID + "\nevery: 1d\ndelete_after_run: true\nroute: slack/T1/C1\nwhat: ever\n---\nDo it.\n")
	f.Add("---\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, notes, err := readDefinition(text, time.UTC)
		if err != nil {
			return
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d.plan.anchor = now
		d.plan.decide(now.Add(-72*time.Hour), now)
		front, err := configs.ReadFrontmatter(text)
		if err != nil {
			t.Fatal(err)
		}
		name, off := "Other", false
		change(&front, connectors.TaskChange{Name: &name, Enabled: &off})
		d2, notes2, err := readDefinition(front.String(), time.UTC)
		if err != nil {
			t.Fatalf("%v in\n%s", err, front.String())
		}
		if d2.spec.Name != name || d2.enabled || d2.timing != d.timing || d2.gate != d.gate || d2.uid != d.uid || d2.spec.Once != d.spec.Once || d2.route != d.route || len(notes2) != len(notes) {
			t.Errorf("changed to %+v from %+v", d2, d)
		}
	})
}
