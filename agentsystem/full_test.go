package agentsystem_test

import (
	"strings"
	"testing"
	"time"
)

// While the disk is full, this member is not ready and says why, whatever met it: a
// message that is not stored, one that waits for its turn, or a run at work. The first
// write that works ends that.
func TestFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		when time.Duration // after the message is there; below 0: before
	}{{"not stored", -1}, {"waits for its turn", 0}, {"at work", time.Second / 2}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				disk := r.onDisk()
				r.line = platforms[0].line
				r.mind.hold("", time.Second)
				r.start()
				after(time.Second)
				if tt.when < 0 {
					disk.full.Store(true)
					if err := r.system.Post(r.Context(), ann, msg("begin", "begin")); err == nil {
						t.Error("a message was acknowledged that is not stored")
					}
				} else {
					if err := r.system.Post(r.Context(), ann, msg("begin", "begin")); err != nil {
						t.Fatal(err)
					}
					after(tt.when)
					disk.full.Store(true)
				}
				after(2 * time.Second)
				for range 3 {
					if ready, why := r.system.Overview.Ready(); ready || !strings.Contains(why, "full or read-only") || r.status().Unwell != why {
						t.Errorf("ready %v: %q; the status says %q", ready, why, r.status().Unwell)
					}
					if tt.when < 0 {
						break // nothing is written
					}
					after(20 * time.Second)
				}
				disk.full.Store(false)
				if tt.when < 0 {
					r.say("begin")
				}
				after(5 * time.Second)
				if ready, why := r.system.Overview.Ready(); !ready || r.status().Unwell != "" {
					t.Errorf("not ready after a write worked: %q", why)
				}
				r.wants("re: begin")
			})
		})
	}
}
