package configs

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones are the same on every machine
)

var brokenSchedule = []fault{
	{"zone", "cron:\n  timezone: Europe/Berlim\n", []string{`2 cron.timezone: "Europe/Berlim" is not a time zone such as Europe/Berlin or UTC; ignored ?`}},
	{"zone of the machine", "cron:\n  timezone: Local\n", []string{`2 cron.timezone: "Local" is not a time zone ?`}},
	{"empty zone", "cron:\n  timezone: \"\"\n", []string{`2 cron.timezone: "" is not a time zone ?`}},
	{"zone as offset", "cron:\n  timezone: +02:00\n", []string{`2 cron.timezone: "+02:00" is not a time zone ?`}},
	{"zone as path", "cron:\n  timezone: ../../etc/passwd\n", []string{`2 cron.timezone: "../../etc/passwd" is not a time zone ?`}},
	{"zone as folder", "cron:\n  timezone: Europe\n", []string{`2 cron.timezone: "Europe" is not a time zone ?`}},
	{"zone as list", "cron:\n  timezone: [UTC]\n", []string{"2 cron.timezone: want a single value, found a list ?"}},
	{"cron gates", "cron:\n  gates: flase\n", []string{`2 cron.gates: "flase" is not one of true, false; no gate command runs until this is corrected ?`}},
	{"cron gates as list", "cron:\n  gates: [true]\n", []string{"2 cron.gates: want a single value, found a list; no gate command runs until this is corrected ?"}},
	{"cron enabled", "cron:\n  enabled: 1\n", []string{`2 cron.enabled: "1" is not one of true, false; ignored ?`}},
	{"cron mistyped", "cron:\n  time_zone: UTC\n  gate: false\n", []string{"2 cron.time_zone: unknown key; ignored ?cron.timezone", "3 cron.gate: unknown key; ignored ?cron.gates"}},
	{"cron off", "cron: off\n", []string{"1 cron: want a group of keys (timezone, gates, enabled, max_tasks, max_new_per_hour), found a single value; ignored ?"}},
	{"every too short", "heartbeat:\n  every: 4m59s\n", []string{`2 heartbeat.every: "4m59s" is not a duration such as 90s or 30m, from 5m to 8784h; ignored ?`}},
	{"every too long", "heartbeat:\n  every: 8785h\n", []string{`2 heartbeat.every: "8785h" is not a duration ?`}},
	{"every without unit", "heartbeat:\n  every: 30\n", []string{`2 heartbeat.every: "30" is not a duration ?`}},
	{"every backwards", "heartbeat:\n  every: -30m\n", []string{`2 heartbeat.every: "-30m" is not a duration ?`}},
	{"hours", "heartbeat:\n  active_hours: 8-22\n", []string{`2 heartbeat.active_hours: "8-22" is not of the form 08:00-22:00; ignored ?`}},
	{"hours as list", "heartbeat:\n  active_hours: [\"08:00-22:00\"]\n", []string{"2 heartbeat.active_hours: want a single value, found a list ?"}},
	{"beats", "heartbeat:\n  max_unattended: 0\n", []string{`2 heartbeat.max_unattended: "0" is not a whole number from 1 to 1000000; ignored ?`}},
	{"route", "heartbeat:\n  route: telegram\n", []string{`2 heartbeat.route: "telegram" is not connector/id ?`}},
	{"route of an unknown connector", "heartbeat:\n  route: telegrm/1\n", []string{`2 heartbeat.route: "telegrm" is not a connector (telegram, slack, discord, web, terminal); ignored ?telegram`}},
	{"route to an agent", "heartbeat:\n  route: agent:" + taskUID + "\n", []string{`2 heartbeat.route: "agent" is not a connector ?`}},
	{"route by name", "heartbeat:\n  route: \"telegram/@ann\"\n", []string{`2 heartbeat.route: "@ann" is not the id of a Telegram chat ?`}},
	{"route without workspace", "heartbeat:\n  route: slack/C1\n", []string{`2 heartbeat.route: "C1" is not the id of a Slack channel with its workspace, such as T012ABC/C012ABC; ignored ?`}},
	{"route to no page", "heartbeat:\n  route: web/\n", []string{`2 heartbeat.route: "" is not the id of a conversation ?`}},
	{"token for a route", "heartbeat:\n  route: telegram/" + canary + "\n", []string{"2 heartbeat.route: a value that looks like a secret is not the id of a Telegram chat ?"}},
	{"heartbeat gates", "heartbeat:\n  gates: never\n", []string{`2 heartbeat.gates: "never" is not one of true, false; no gate command runs until this is corrected ?`}},
	{"heartbeat enabled", "heartbeat:\n  enabled: maybe\n", []string{`2 heartbeat.enabled: "maybe" is not one of true, false; ignored ?`}},
	{"heartbeat mistyped", "heartbeat:\n  maxUnatended: 3\n", []string{"2 heartbeat.maxUnatended: unknown key; ignored ?heartbeat.max_unattended"}},
}

func TestSchedule(t *testing.T) {
	c, warnings := load(t, `
cron: {timezone: Europe/Berlin, gates: no, enabled: Off}
heartbeat:
  every: 1h30m
  active_hours: 22:00 - 6:00
  timezone: America/New_York
  max_unattended: 1
  route: slack:T1/C1
  gates: false
  enabled: FALSE
`, nil)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if got := c.Schedule.Cron; got.Enabled || got.Gates || got.Zone.String() != "Europe/Berlin" {
		t.Errorf("cron %+v", got)
	}
	zone := c.Schedule.Heartbeat.Zone
	want := Heartbeat{Every: 90 * time.Minute, ActiveHours: "22:00-06:00", Zone: zone, MaxUnattended: 1, Route: "slack/T1/C1"}
	if c.Schedule.Heartbeat != want || zone.String() != "America/New_York" {
		t.Errorf("heartbeat %+v, want %+v", c.Schedule.Heartbeat, want)
	}
}

// The heartbeat's hours are in the zone of tasks unless it has its own.
func TestZoneOfTheHeartbeat(t *testing.T) {
	for file, want := range map[string]string{
		"":                              "UTC",
		"cron: {timezone: Asia/Tokyo}":  "Asia/Tokyo",
		"heartbeat: {timezone: UTC}":    "UTC",
		"heartbeat: {timezone: No/Way}": "UTC",
		"heartbeat: {timezone: UTC}\ncron: {timezone: Asia/Tokyo}":    "UTC",
		"heartbeat: {timezone: No/Way}\ncron: {timezone: Asia/Tokyo}": "Asia/Tokyo",
	} {
		c, _ := load(t, file, nil)
		if got := c.Schedule.Heartbeat.Zone.String(); got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
	}
	t.Chdir(t.TempDir())
	if c, _, err := Load("", environ(nil)); err != nil || c.Schedule.Heartbeat.Zone != time.UTC || c.Schedule.Cron.Zone != time.UTC {
		t.Errorf("without a file: %+v, %v", c.Schedule.Heartbeat, err)
	}
}

// Gates are closed by whatever is not understood, and by nothing else.
func TestGates(t *testing.T) {
	for file, want := range map[string]bool{
		"": true, "cron:": true, "cron: {gates: true}": true, "cron: {gates: On}": true, "cron: {enabled: x}": true,
		"cron: {gates: }": false, "cron: {gates: false}": false, "cron: {gates: off}": false, "cron: {gates: \"\"}": false, "cron: {gates: 1}": false, "cron: {gates: {a: b}}": false,
	} {
		c, _ := load(t, file, nil)
		if c.Schedule.Cron.Gates != want || !c.Schedule.Heartbeat.Gates || c.Schedule.Cron.Enabled != !strings.Contains(file, "enabled: x") {
			t.Errorf("%q: gates %v, want %v; heartbeat %v, enabled %v", file, c.Schedule.Cron.Gates, want, c.Schedule.Heartbeat.Gates, c.Schedule.Cron.Enabled)
		}
	}
	if c, _ := load(t, "heartbeat: {gates: nope}", nil); c.Schedule.Heartbeat.Gates || !c.Schedule.Cron.Gates {
		t.Errorf("the heartbeat's gates %v, those of tasks %v", c.Schedule.Heartbeat.Gates, c.Schedule.Cron.Gates)
	}
}

func TestActiveHours(t *testing.T) {
	for v, want := range map[string]string{
		"08:00-22:00": "08:00-22:00", "8:00-9:05": "08:00-09:05", "22:30 - 6:00": "22:30-06:00", "00:00-23:59": "00:00-23:59",
		"08:00-24:00": "08:00-00:00", "00:00-24:00": "", "0:00-24:00": "", "23:59-00:00": "23:59-00:00",
	} {
		if got, err := activeHours(v); err != nil || got != want {
			t.Errorf("activeHours(%q) = %q, %v; want %q", v, got, err, want)
		}
	}
	for _, v := range []string{
		"", "08:00", "-", "08:00-", "08:00-22", "08:00-22:0", "8-22", "08:00-22:00h", "08:00-22:00-23:00", "08.00-22.00", "008:00-22:00", "08:00–22:00",
		"24:00-08:00", "25:00-26:00", "08:60-22:00", "08:00-22:60", "08:00-24:01", "00:00-24:60", "08:00-08:00", "8:00-08:00", "00:00-00:00",
	} {
		if got, err := activeHours(v); err == nil {
			t.Errorf("activeHours(%q) = %q, want an error", v, got)
		}
	}
}

func FuzzActiveHours(f *testing.F) {
	for _, s := range []string{"08:00-22:00", "8:00 - 24:00", "00:00-24:00", "24:00-24:00", "99:99-99:99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, v string) {
		got, err := activeHours(v)
		if err != nil || got == "" {
			return
		}
		for _, end := range []string{got[:5], got[6:]} {
			if _, err := time.Parse("15:04", end); err != nil {
				t.Errorf("%q became %q: %v", v, got, err)
			}
		}
		if again, err := activeHours(got); err != nil || again != got {
			t.Errorf("%q became %q, then %q, %v", v, got, again, err)
		}
	})
}

func TestParseRoute(t *testing.T) {
	for s, want := range map[string]string{
		"telegram/4711": "telegram/4711", "telegram:-100": "telegram/-100", " telegram / 1 ": "telegram/1",
		"slack/T1/C1": "slack/T1/C1", "slack:E1/D1": "slack/E1/D1", "web/main": "web/main", "terminal/operator": "terminal/operator",
		"": "", "/": "", ":": "", "telegram": "", "telegram/1/2": "", "slack/T1/": "", "slack/T1/c1": "", "web/a/b": "", "none": "", "none/1": "", "telegram/*": "",
	} {
		if got, err := parseRoute(nil, s); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("parseRoute(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
}

// checkSchedule reports settings that break their rules.
func checkSchedule(t *testing.T, c Config) {
	t.Helper()
	h := c.Schedule.Heartbeat
	if c.Schedule.Cron.Zone == nil || h.Zone == nil || h.Every < 5*time.Minute || h.Every > 366*24*time.Hour || h.MaxUnattended < 1 {
		t.Errorf("cron %+v, heartbeat %+v", c.Schedule.Cron, h)
	}
	if again, err := activeHours(h.ActiveHours); h.ActiveHours != "" && (err != nil || again != h.ActiveHours) {
		t.Errorf("hours %q: %v", h.ActiveHours, err)
	}
	if again, err := parseRoute(nil, h.Route); h.Route != "" && (err != nil || again != h.Route) {
		t.Errorf("route %q: %v", h.Route, err)
	}
}
