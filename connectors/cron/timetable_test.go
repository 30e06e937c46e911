package cron

import (
	"strings"
	"testing"
	"time"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNext(t *testing.T) {
	const berlin, york = "Europe/Berlin", "America/New_York"
	for _, c := range []struct {
		name, zone, spec, after string
		want                    string // RFC 3339, by spaces
	}{
		{"every minute", "UTC", "* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z 2026-01-01T00:02:00Z"},
		{"within a second", "UTC", "* * * * *", "2026-01-01T00:00:59.9Z", "2026-01-01T00:01:00Z"},
		{"lists and steps", "UTC", "0,30 8-10/2 * * *", "2026-01-01T08:00:00Z", "2026-01-01T08:30:00Z 2026-01-01T10:00:00Z 2026-01-01T10:30:00Z 2026-01-02T08:00:00Z"},
		{"names", "UTC", "0 9 * JAN mon-fri", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00Z"},
		{"day or weekday", "UTC", "0 0 13 * 5", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z 2026-02-13T00:00:00Z 2026-02-20T00:00:00Z 2026-02-27T00:00:00Z 2026-03-06T00:00:00Z 2026-03-13T00:00:00Z"},
		{"weekday alone", "UTC", "0 0 * * 5", "2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z"},
		{"7 is Sunday", "UTC", "0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z 2026-01-11T00:00:00Z"},
		{"to 7", "UTC", "0 0 * * 5-7", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z 2026-01-03T00:00:00Z 2026-01-04T00:00:00Z 2026-01-09T00:00:00Z"},
		{"0 to 7 in steps", "UTC", "0 0 * * 1-7/3", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z 2026-01-05T00:00:00Z 2026-01-08T00:00:00Z"},
		{"sat-7", "UTC", "0 0 * * sat-7", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z 2026-01-04T00:00:00Z 2026-01-10T00:00:00Z"},
		{"@daily", "UTC", "@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"@hourly in a half zone", "Asia/Kolkata", "@hourly", "2026-01-01T00:00:00Z", "2026-01-01T06:00:00+05:30"},
		{"leap day", "UTC", "0 12 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z 2032-02-29T12:00:00Z"},
		{"leap days around 2100", "UTC", "0 12 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T12:00:00Z"},
		{"31st", "UTC", "0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z 2026-05-31T00:00:00Z"},
		{"gap", berlin, "30 2 * * *", "2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"many in the gap", berlin, "*/20 2,3 29 3 *", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-29T03:20:00+02:00 2026-03-29T03:40:00+02:00"},
		{"minutes over the gap", berlin, "* * * * *", "2026-03-29T01:58:00+01:00", "2026-03-29T01:59:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:01:00+02:00"},
		{"repeated", berlin, "30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"begun in the second of them", berlin, "30 2 * * *", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"hourly over the repeated hour", berlin, "0 * * * *", "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T03:00:00+01:00"},
		{"gap in New York", york, "30 2 * * *", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"repeated in New York", york, "30 1 * * *", "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"half an hour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"gap at midnight", "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
		{"a day that was left out", "Pacific/Apia", "0 9 * * *", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00 2011-12-31T09:00:00+14:00"},
		{"a zone without changes", "Etc/GMT-3", "0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-01T09:00:00+03:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := parseWall(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			s := timetable{wall: w, zone: zoneOf(t, c.zone)}
			want := strings.Fields(c.want)
			var got []string
			for _, at := range s.upcoming(instant(t, c.after), time.Time{}, len(want)) {
				got = append(got, at.Format(time.RFC3339))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("after %s: got %v, want %v", c.after, got, want)
			}
		})
	}
}

func TestRefusedSchedules(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", "has 0 fields, want 5"},
		{"* * * *", "has 4 fields"},
		{"0 * * * * *", "no field for seconds"},
		{"60 * * * *", "field 1 (minute): 60 is not from 0 to 59"},
		{"0 24 * * *", "field 2 (hour): 24 is not"},
		{"0 0 0 * *", "field 3 (day of month): 0 is not from 1 to 31"},
		{"0 0 32 * *", "field 3 (day of month)"},
		{"0 0 * 13 *", "field 4 (month)"},
		{"0 0 * foo *", "field 4 (month)"},
		{"0 0 * * 8", "field 5 (weekday): 8 is not from 0 to 7"},
		{"0 0 * * xyz-7", "field 5 (weekday)"},
		{"0 0 * * mon-xyz", "field 5 (weekday)"},
		{"*/0 * * * *", "field 1 (minute): \"*/0\": a step must be"},
		{"*/-5 * * * *", "field 1 (minute): \"*/-5\" is not a value"},
		{"*/90 * * * *", "a step must be from 1 to 59"},
		{"30-10 * * * *", "the range runs backwards"},
		{"0 0 * * fri-sun", "the range runs backwards"},
		{"5abc * * * *", "field 1 (minute): \"5abc\" is not a value"},
		{"+5 * * * *", "is not a value"},
		{"1,,2 * * * *", "field 1 (minute): \"\" is not a value"},
		{", * * * *", "is not a value"},
		{"*-5 * * * *", "is not a value"},
		{"1-2-3 * * * *", "is not a value"},
		{"99999999999999999999 * * * *", "is not a value"},
		{"0 0 L * *", "is not a value"},
		{"TZ=UTC", "a field of its own"},
		{"CRON_TZ=Europe/Berlin 0 9 * * *", "a field of its own"},
		{"TZ= 0 9 * * *", "a field of its own"},
		{"@reboot", "is not one of"},
		{"@every 1h", "is not one of"},
		{"@", "is not one of"},
	} {
		if _, err := parseWall(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.spec, err, c.want)
		}
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // 0: refused
	}{
		{"30m", 30 * time.Minute},
		{" 1h30m ", 90 * time.Minute},
		{"1d", 24 * time.Hour},
		{"1w2d3h", 9*24*time.Hour + 3*time.Hour},
		{"1s", time.Second},
		{"0s", 0},
		{"500ms", 0},
		{"1500ms", 0},
		{"-1h", 0},
		{"1d-1h", 0},
		{"5", 0},
		{"", 0},
		{"d", 0},
		{"1.5d", 0},
		{"-1d", 0},
		{"9999999999d", 0},
		{"99999999w", 0},
		{"106751d24h", 0},
	} {
		got, err := parseEvery(c.text)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%q: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	zone := zoneOf(t, "Europe/Berlin")
	for _, c := range []struct{ text, want string }{
		{"2026-12-24T18:00:00+01:00", "2026-12-24T18:00:00+01:00"},
		{"2026-12-24T17:00:00.75Z", "2026-12-24T18:00:00+01:00"},
		{"2026-12-24 18:00", "2026-12-24T18:00:00+01:00"},
		{"2026-03-29T02:30", "2026-03-29T03:00:00+02:00"},
		{"2026-02-30T10:00:00Z", "there is no such day or time"},
		{"2026-02-30 10:00", "there is no such day or time"},
		{"2026-01-01T25:00:00Z", "there is no such day or time"},
		{"0001-01-01T00:00:00Z", "want a year from"},
		{"tomorrow", "is not a time such as"},
		{"", "is not a time such as"},
	} {
		got, err := parseAt(c.text, zone)
		s := got.Format(time.RFC3339)
		if err != nil {
			s = err.Error()
		}
		if !strings.Contains(s, c.want) {
			t.Errorf("%q: %s, want %s", c.text, s, c.want)
		}
	}
}

func TestMisfireRules(t *testing.T) {
	for _, c := range []struct {
		text string
		want misfire // zero: refused
	}{
		{"skip", misfire{rule: "skip"}},
		{"run_once", misfire{rule: "run_once"}},
		{"run_if_within 2h", misfire{"run_if_within", 2 * time.Hour}},
		{"run_if_within=2h", misfire{"run_if_within", 2 * time.Hour}},
		{"run_if_within  =  1d", misfire{"run_if_within", 24 * time.Hour}},
		{"run_if_within", misfire{}},
		{"run_if_within 0s", misfire{}},
		{"skip 2h", misfire{}},
		{"", misfire{}},
		{"never", misfire{}},
	} {
		if got, err := parseMisfire(c.text); got != c.want || (err == nil) != (c.want != misfire{}) {
			t.Errorf("%q: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

func TestDecide(t *testing.T) {
	wall, err := parseWall("0 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	hourly := timetable{wall: wall, zone: time.UTC}
	base := time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)
	hour := func(n int) time.Time { return base.Add(time.Duration(n)*time.Hour - 30*time.Minute) }
	for _, c := range []struct {
		name string
		s    timetable
		rule misfire
		now  time.Duration // after 00:30
		want decision
	}{
		{"nothing", hourly, misfire{rule: "skip"}, 29 * time.Minute, decision{}},
		{"on time", hourly, misfire{rule: "skip"}, 30 * time.Minute, decision{fire: hour(1)}},
		{"a minute late", hourly, misfire{rule: "skip"}, 31 * time.Minute, decision{fire: hour(1)}},
		{"later", hourly, misfire{rule: "skip"}, 31*time.Minute + 1, decision{skip: hour(1), missed: 1}},
		{"one before", hourly, misfire{rule: "skip"}, 150 * time.Minute, decision{fire: hour(3), skip: hour(2), missed: 2}},
		{"one before, not told", hourly, misfire{rule: "run_once"}, 150 * time.Minute, decision{fire: hour(3), missed: 2}},
		{"run_once", hourly, misfire{rule: "run_once"}, 170 * time.Minute, decision{fire: hour(3), late: true, missed: 2}},
		{"within", hourly, misfire{"run_if_within", 20 * time.Minute}, 170 * time.Minute, decision{fire: hour(3), late: true, missed: 2}},
		{"not within", hourly, misfire{"run_if_within", 19 * time.Minute}, 170 * time.Minute, decision{skip: hour(3), missed: 3}},
		{"set back", hourly, misfire{rule: "run_once"}, -23 * time.Hour, decision{}},
		{"set back far", hourly, misfire{rule: "run_once"}, -25 * time.Hour, decision{}},
		{"thousands", hourly, misfire{rule: "skip"}, 2000*time.Hour + 40*time.Minute, decision{skip: hour(2001), missed: 1000}},
		{"thousands and now", hourly, misfire{rule: "skip"}, 2000*time.Hour + 30*time.Minute, decision{fire: hour(2001), skip: hour(2000), missed: 999}},
		{"centuries of every", timetable{every: time.Second, zone: time.UTC}, misfire{rule: "run_once"}, 200 * 365 * 24 * time.Hour, decision{fire: base.Add(200 * 365 * 24 * time.Hour), missed: 999}},
	} {
		p := plan{timetable: c.s, misfire: c.rule, anchor: base}
		got := p.decide(base, base.Add(c.now))
		if !got.fire.Equal(c.want.fire) || !got.skip.Equal(c.want.skip) || got.late != c.want.late || got.missed != c.want.missed {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// After a clock that was wrong by more than a day, instants come again.
func TestDecideAfterFarSetBack(t *testing.T) {
	wall, err := parseWall("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	p := plan{timetable: timetable{wall: wall, zone: time.UTC}}
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	if got, want := p.due(since(now.AddDate(70, 0, 0), now)), now.Add(30*time.Second); !got.Equal(want) {
		t.Errorf("due %v, want %v", got, want)
	}
}

// FuzzSchedule wants that whatever is accepted has instants that only go
// forward, and shows the wall-clock time of the schedule.
func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 1-3 1,15 * 7", "0 9 * * mon-fri", "@daily", "TZ=UTC", "0 0 31 2 *", "? ? ? ? ?", "0 0 * * 5-7/2"} {
		f.Add(s, int64(1774746000))
	}
	zones := []*time.Location{time.UTC, zoneOf(f, "Europe/Berlin"), zoneOf(f, "America/New_York"), zoneOf(f, "Australia/Lord_Howe")}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		w, err := parseWall(text)
		if err != nil {
			return
		}
		at := time.Unix(((unix%4e9)+4e9)%4e9, 0)
		for _, z := range zones {
			s, last := timetable{wall: w, zone: z}, at
			for _, next := range s.upcoming(at, time.Time{}, 10) {
				if !next.After(last) {
					t.Fatalf("%q in %v: %v is not after %v", text, z, next, last)
				}
				if next.Second() != 0 {
					t.Fatalf("%q in %v: %v is within a minute", text, z, next)
				}
				last = next
			}
		}
	})
}
