package clock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/clock"
)

func call(ctx context.Context, t *testing.T, name, args string) claybot.Record {
	t.Helper()
	s, err := tools.NewSet(clock.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Effect(name) != tools.ReadOnly {
		t.Errorf("%s is %v", name, s.Effect(name))
	}
	r, wait := s.Call(ctx, tools.Env{}, claybot.ToolCall{ID: "c", Name: name, Args: args})
	if wait != nil {
		t.Errorf("%s pauses the run", name)
	}
	return r
}

func TestCurrentTime(t *testing.T) {
	tests := []struct {
		args string
		ok   bool
		want string
	}{
		{`{}`, true, "Saturday, 1 January 2000, 00:00:00 UTC (+00:00)"},
		{`{"zone":"UTC"}`, true, "00:00:00 UTC"},
		{`{"zone":"Local"}`, true, "00:00:00 UTC"},
		{`{"zone":"Nowhere/City"}`, false, `field zone: unknown time zone "Nowhere/City"`},
		{`{"zone":"../../etc/passwd"}`, false, "unknown time zone"},
		{`{"zone":1}`, false, "field zone"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a bubble begins with the year 2000
				r := call(t.Context(), t, "current_time", tt.args)
				if r.OK != tt.ok || !strings.Contains(r.Text, tt.want) {
					t.Errorf("ok %v, text %q; want %v, %q", r.OK, r.Text, tt.ok, tt.want)
				}
			})
		})
	}
}

func TestWait(t *testing.T) {
	tests := []struct {
		args string
		stop time.Duration
		ok   bool
		took time.Duration
		want string
	}{
		{`{"seconds":0}`, 0, true, 0, "waited 0 seconds"},
		{`{"seconds":1.5}`, 0, true, 1500 * time.Millisecond, "waited 1.5 seconds"},
		{`{"seconds":300}`, 0, true, 300 * time.Second, "waited 300 seconds"},
		{`{"seconds":301}`, 0, false, 0, "want 0 to 300"},
		{`{"seconds":-1}`, 0, false, 0, "want 0 to 300"},
		{`{}`, 0, false, 0, `missing properties: ["seconds"]`},
		{`{"seconds":300}`, time.Second, false, time.Second, "interrupted"},
	}
	for _, tt := range tests {
		t.Run(tt.args+tt.stop.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				}
				start := time.Now()
				r := call(ctx, t, "wait", tt.args)
				if r.OK != tt.ok || !strings.Contains(r.Text, tt.want) || time.Since(start) != tt.took {
					t.Errorf("ok %v, text %q after %v; want %v, %q, %v", r.OK, r.Text, time.Since(start), tt.ok, tt.want, tt.took)
				}
			})
		})
	}
}
