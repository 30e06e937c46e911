package cron_test

import (
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
)

// The zone of a trigger of a flow changes on the day on which it fired. Instants that the new zone
// puts into the past are not made up for, none fires twice, and the next one fires, also over a
// restart.
func TestZoneOfFlowChanges(t *testing.T) {
	daily := func(zone string) []connectors.TaskSpec {
		return []connectors.TaskSpec{{Name: "news", Schedule: "0 9 * * *", Timezone: zone, Prompt: "morning", Owner: "telegram/1", Misfire: "run_once", Flow: "news/daily"}}
	}
	for name, tt := range map[string]struct {
		zone string // after Europe/Berlin, at 10:00 UTC
		want []string
	}{
		"to the west, 9:00 is over":  {"Europe/London", []string{"2000-01-01T08:00:00Z", "2000-01-02T09:00:00Z"}},
		"to the west, 9:00 is ahead": {"America/New_York", []string{"2000-01-01T08:00:00Z", "2000-01-01T14:00:00Z", "2000-01-02T14:00:00Z"}},
		"to the east":                {"Asia/Tokyo", []string{"2000-01-01T08:00:00Z", "2000-01-02T00:00:00Z"}},
		"to none":                    {"", []string{"2000-01-01T08:00:00Z", "2000-01-02T09:00:00Z"}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and a restart"}[restart], func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.cfg.Poll = time.Hour
					keep := func(zone string) {
						pass(time.Second) // it has started
						if err := r.cron.KeepFlows(r.t.Context(), daily(zone)); err != nil {
							r.t.Error(err)
						}
					}
					r.start()
					keep("Europe/Berlin")
					pass(10 * time.Hour)
					keep(tt.zone)
					if restart {
						r.stop()
						r.start()
						keep(tt.zone)
					}
					pass(29 * time.Hour) // until 15:00 UTC of the next day
					var got []string
					for _, p := range r.posts {
						got = append(got, p.m.Firing.Instant)
						if p.m.Flow == nil || p.m.Flow.Name != "news" {
							t.Errorf("%s starts %+v", p.m.Firing.Instant, p.m.Flow)
						}
					}
					r.is(got, tt.want...)
				})
			})
		}
	}
}
