package configs

import (
	"strings"
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	plain := defaultRetention()
	for _, tt := range []struct {
		file string
		want func(*Retention)
		warn string // empty: none
	}{
		{"", func(*Retention) {}, ""},
		{"retention: {events: 2d, runs: 30d, outgoing: 7d, tasks: 3650d, usage: 62d}", func(r *Retention) {
			*r = Retention{Events: 2 * day, Runs: 30 * day, Outgoing: 7 * day, Tasks: 3650 * day, Usage: 62 * day}
		}, ""},
		{"retention: {events: 36h}", func(r *Retention) { r.Events = 36 * time.Hour }, ""},
		{"retention: {runs: 0}", func(r *Retention) { r.Runs = 0 }, ""},
		{"retention: {runs: 29d}", func(*Retention) {}, `"29d" is not a duration such as 90s or 30m, from 30d to 3650d, nor 0`},
		{"retention: {runs: 3651d}", func(*Retention) {}, "from 30d to 3650d"},
		{"retention: {runs: 99999999d}", func(*Retention) {}, "from 30d to 3650d"},
		{"retention: {usage: -62d}", func(*Retention) {}, "from 62d to 3650d"},
		{"retention: {usage: d}", func(*Retention) {}, "from 62d to 3650d"},
		{"retention: {usage: 1.5d}", func(*Retention) {}, "from 62d to 3650d"},
		{"retention: {outgoing: 30}", func(*Retention) {}, "from 7d to 3650d"},
		{"retention: {histories: 30d}", func(r *Retention) { r.Histories = 30 * day }, ""},
		{"retention: {histories: 29d}", func(*Retention) {}, "from 30d to 3650d"},
		{"retention: {records: 30d}", func(*Retention) {}, "records"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			want := plain
			tt.want(&want)
			c, warnings, err := Load(write(t, tt.file+"\n"), environ(nil))
			if err != nil || c.Retention != want {
				t.Errorf("got %+v, %v, want %+v", c.Retention, err, want)
			}
			switch {
			case tt.warn == "" && len(warnings) > 0, tt.warn != "" && len(warnings) != 1:
				t.Errorf("warnings %v", warnings)
			case tt.warn != "" && !strings.Contains(warnings[0].String(), tt.warn):
				t.Errorf("warning %q, want %q", warnings[0].String(), tt.warn)
			}
		})
	}
}
