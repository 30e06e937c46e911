package heartbeat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/configs"
)

func TestReadTask(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       task // without text
		err        string
		notes      int
	}{
		{"no settings", "look\n", task{title: "id", prompt: "look", enabled: true}, "", 0},
		{"a byte order mark and foreign ends of lines", "\ufeff# T\r\nlook\r\n", task{title: "T", prompt: "# T\nlook", enabled: true}, "", 0},
		{"empty settings", "---\n---\nlook", task{title: "id", prompt: "look", enabled: true}, "", 0},
		{"title", "---\ntitle: T\n---\n# H\nlook", task{title: "T", prompt: "# H\nlook", enabled: true}, "", 0},
		{"name", "---\nname: T\n---\nlook", task{title: "T", prompt: "look", enabled: true}, "", 0},
		{"an empty title", "---\ntitle:\n---\n## H ##\nlook", task{title: "H", prompt: "## H ##\nlook", enabled: true}, "", 0},
		{"a title of two lines", "---\ntitle: \"a\\n\\tb\"\n---\nlook", task{title: "a b", prompt: "look", enabled: true}, "", 0},
		{"the first heading", "look\n\n  ### One\n# Two", task{title: "One", prompt: "look\n\n  ### One\n# Two", enabled: true}, "", 0},
		{"no heading in a block of code", "```\n# no\n```\n#no\n####### no\n#\n# Yes", task{title: "Yes", prompt: "```\n# no\n```\n#no\n####### no\n#\n# Yes", enabled: true}, "", 0},
		{"disabled", "---\nenabled: Off\n---\nlook", task{title: "id", prompt: "look"}, "", 0},
		{"all", "---\ntitle: T\nevery: 1d12h\nenabled: yes\nwhen: ./x.sh\nactive_hours: 8:00-22:30\n---\nlook", task{title: "T", prompt: "look", enabled: true, gate: "./x.sh", every: 36 * time.Hour, hours: &hours{480, 1350}, everyText: "1d12h", hoursText: "8:00-22:30"}, "", 0},
		{"empty", "", task{title: "id", enabled: true}, "", 0},
		{"too quick", "---\nevery: 1ns\n---\nlook", task{title: "id", prompt: "look", enabled: true, every: 5 * time.Minute, everyText: "1ns"}, "", 1},
		{"unknown", "---\nx: 1\nmodel: {a: 1, b: 2}\n---\nlook", task{title: "id", prompt: "look", enabled: true}, "", 3},
		{"odd bytes", "lo\xffok\x00", task{title: "id", prompt: "lo\uFFFDok", enabled: true}, "", 0},

		{"both names", "---\ntitle: a\nname: b\n---\nlook", task{}, "line 3: title and name are the same setting; leave one of them out", 0},
		{"not a flag", "---\nenabled: maybe\n---\nlook", task{}, `line 2: enabled: "maybe" is not one of true and false`, 0},
		{"not a duration", "---\n\nevery: 30\n---\nlook", task{}, `line 3: every: "30" is not a duration such as 30m, 2h or 1d`, 0},
		{"not hours", "---\nactive_hours: noon\n---\nlook", task{}, `line 2: active_hours: "noon" is not of the form 08:00-22:00`, 0},
		{"no end of the settings", "---\ntitle: a\nlook", task{}, "line 1: the front matter has no closing line ---", 0},
		{"a list", "---\nevery: [1h]\n---\nlook", task{}, "line 2: every: want a single value, found a list", 0},
		{"twice", "---\nevery: 1h\nevery: 2h\n---\nlook", task{}, "line 3: every stands there twice", 0},
	} {
		got, notes, err := readTask("id", tc.text)
		if err != nil || tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.err)
			}
			continue
		}
		if (got.hours == nil) != (tc.want.hours == nil) || got.hours != nil && *got.hours != *tc.want.hours {
			t.Errorf("%s: hours %v, want %v", tc.name, got.hours, tc.want.hours)
		}
		got.hours, tc.want.hours = nil, nil
		tc.want.id, tc.want.text = "id", tc.text
		if got != tc.want || len(notes) != tc.notes {
			t.Errorf("%s: %+v with %v, want %+v", tc.name, got, notes, tc.want)
		}
	}
}

func FuzzReadTask(f *testing.F) {
	f.Add("---\ntitle: T\nevery: 1d12h\nenabled: no\nwhen: x\nactive_hours: 22:00-06:00\n---\n# H\nlook")
	f.Add("```\n# a\n# b #")
	f.Add("---\nevery: -1h\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, _, err := readTask("id", text)
		var line *configs.LineError
		if err != nil {
			if !errors.As(err, &line) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		switch {
		case got.title == "" || strings.ContainsAny(got.title, "\n\r\x00"):
			t.Errorf("title %q", got.title)
		case got.every != 0 && (got.every < minEvery || got.every > maxEvery):
			t.Errorf("every %v", got.every)
		case strings.TrimSpace(got.prompt) != got.prompt || strings.Contains(got.prompt, "\x00"):
			t.Errorf("prompt %q", got.prompt)
		}
	})
}

func TestParseHours(t *testing.T) {
	for _, tc := range []struct {
		text string
		want hours
		err  string
	}{
		{"08:00-22:00", hours{480, 1320}, ""},
		{" 8:00 - 22:00 ", hours{480, 1320}, ""},
		{"22:00-06:00", hours{1320, 360}, ""},
		{"00:00-24:00", hours{}, ""},
		{"12:00-24:00", hours{720, 0}, ""},
		{"23:59-00:00", hours{1439, 0}, ""},
		{"", hours{}, "form"},
		{"8-22", hours{}, "form"},
		{"08:00–22:00", hours{}, "form"},
		{"08:00-22:00x", hours{}, "form"},
		{"-1:00-22:00", hours{}, "form"},
		{"008:00-22:00", hours{}, "form"},
		{"08:60-22:00", hours{}, "no clock"},
		{"08:00-22:99", hours{}, "no clock"},
		{"24:00-08:00", hours{}, "no clock"},
		{"08:00-24:01", hours{}, "no clock"},
		{"08:00-99:00", hours{}, "no clock"},
		{"08:00-08:00", hours{}, "same time"},
		{"00:00-00:00", hours{}, "same time"},
	} {
		got, err := parseHours(tc.text)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %v, %v, want %v, %q", tc.text, got, err, tc.want, tc.err)
		}
	}
}

func FuzzParseHours(f *testing.F) {
	f.Add("08:00-22:00", int64(0))
	f.Add("22:00 - 6:30", int64(1e9))
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		h, err := parseHours(text)
		if err != nil {
			return
		}
		at := time.Unix(unix%1e11, 0).UTC()
		if next := h.next(at); next.Before(at) || !h.contain(next) || next.Sub(at) >= 24*time.Hour {
			t.Errorf("%q: after %v comes %v", text, at, next)
		}
	})
}

func TestNextInHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, hour, minute int) time.Time {
		return time.Date(2027, 3, day, hour, minute, 0, 0, berlin)
	}
	for _, tc := range []struct {
		h        hours
		at, want time.Time
	}{
		{hours{}, at(1, 5, 3), at(1, 5, 3)},
		{hours{480, 1320}, at(1, 5, 3), at(1, 8, 0)},
		{hours{480, 1320}, at(1, 8, 0), at(1, 8, 0)},
		{hours{480, 1320}, at(1, 21, 59), at(1, 21, 59)},
		{hours{480, 1320}, at(1, 22, 0), at(2, 8, 0)},
		{hours{480, 1320}, at(31, 22, 0), time.Date(2027, 4, 1, 8, 0, 0, 0, berlin)},
		{hours{1320, 360}, at(1, 23, 0), at(1, 23, 0)},
		{hours{1320, 360}, at(1, 5, 59), at(1, 5, 59)},
		{hours{1320, 360}, at(1, 6, 0), at(1, 22, 0)},
		{hours{720, 0}, at(2, 0, 0), at(2, 12, 0)},
		// On the 28th clocks go from 2:00 to 3:00.
		{hours{240, 300}, at(28, 1, 0), at(28, 4, 0)},
		{hours{130, 140}, at(28, 1, 0), at(29, 2, 10)}, // are not shown that day
	} {
		if got := tc.h.next(tc.at); !got.Equal(tc.want) {
			t.Errorf("%v after %v: %v, want %v", tc.h, tc.at, got, tc.want)
		}
	}
}

func TestParseEvery(t *testing.T) {
	for _, tc := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"30m", 30 * time.Minute, true},
		{" 2h ", 2 * time.Hour, true},
		{"1d", 24 * time.Hour, true},
		{"1d30m", 24*time.Hour + 30*time.Minute, true},
		{"0d", 0, true},
		{"0", 0, true},
		{"366d", 366 * 24 * time.Hour, true},
		{"366d1s", 0, false},
		{"9000000000d", 0, false},
		{"2000000000d", 0, false},
		{"2562047h47m16s", 0, false},
		{"106751d100000h", 0, false},
		{"", 0, false},
		{"d", 0, false},
		{"-1d", 0, false},
		{"-30m", 0, false},
		{"+1d", 0, false},
		{"1d-1h", 0, false},
		{"30", 0, false},
		{"half an hour", 0, false},
		{"1 d", 0, false},
	} {
		got, err := parseEvery(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%q: %v, %v, want %v", tc.text, got, err, tc.want)
		}
	}
}

func TestGatesWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tasks := []*task{{id: "a", gate: "exit 0"}, {id: "b"}}
	h := New(Config{Dir: t.TempDir()})
	if v, err := askGates(ctx, h.sched, h.cfg.Dir, tasks, Settings{Gates: true, Zone: time.UTC}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", v, err)
	}
}
