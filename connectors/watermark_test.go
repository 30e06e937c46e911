package connectors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// oneMark is Marks with one value, of a store that was never restored.
type oneMark struct{ value string }

func (m *oneMark) Checkpoint(_ context.Context, key string) (string, error) {
	if key == MarkRestored {
		return "", nil
	}
	return m.value, nil
}

func (m *oneMark) SetCheckpoint(_ context.Context, _, value string) error {
	m.value = value
	return nil
}

// A mark from a clock that was ahead hid every gap until the clock had come so far
// again, because marks never moved back.
func TestWatermarkAfterClockWasAhead(t *testing.T) {
	const reach = 24 * time.Hour
	for _, tt := range []struct {
		name    string
		kept    time.Duration // the mark, from now; 0: there is none
		back    time.Duration // the clock is set back by it in the process, which then waits for idle
		idle    time.Duration
		want    time.Duration // how long ago the source delivered; -1: never
		assumed bool
	}{
		{"no mark", 0, 0, 0, -1, false},
		{"a mark", -2 * time.Hour, 0, 0, 2 * time.Hour, false},
		{"a mark of a clock that is a bit ahead", 30 * time.Second, 0, 0, -30 * time.Second, false},
		{"a mark of a clock that was ahead", 48 * time.Hour, 0, 0, reach, true},
		{"set back in the process", 0, time.Hour, 0, 0, false},
		{"set back in the process, then idle", 0, time.Hour, 3 * time.Hour, 3 * time.Hour, false},
		{"both", 48 * time.Hour, time.Hour, 3 * time.Hour, 3 * time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(oneMark)
				w := Watermark{Marks: m, Reach: reach}
				if tt.kept != 0 {
					m.value = time.Now().Add(tt.kept).UTC().Format(time.RFC3339)
				}
				if tt.back != 0 {
					w.last, w.seen = time.Now().Add(tt.back).Round(0), time.Now()
				}
				time.Sleep(tt.idle)
				for range 2 {
					last, err := w.Last(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if got := time.Since(last); last.IsZero() != (tt.want < 0 && tt.kept == 0) || !last.IsZero() && got != tt.want || w.Assumed() != tt.assumed {
						t.Errorf("delivered %v ago (never: %t), assumed %t, want %v, %t", got, last.IsZero(), w.Assumed(), tt.want, tt.assumed)
					}
				}
				if err := w.Advance(t.Context(), time.Now().Add(time.Hour), true); err != nil {
					t.Fatal(err)
				}
				if err := w.Advance(t.Context(), time.Now(), true); err != nil {
					t.Fatal(err)
				}
				if want := time.Now().UTC().Format(time.RFC3339); m.value != want || w.Assumed() {
					t.Errorf("the mark is %s, want it lowered to %s", m.value, want)
				}
			})
		})
	}
}

// A mark that went back with its store shows no gap from before the store was restored.
func TestWatermarkAfterRestore(t *testing.T) {
	for _, tt := range []struct {
		name           string
		kept, restored time.Duration // how long ago; 0: there is none
		want           time.Duration // -1: never
	}{
		{"never restored", 48 * time.Hour, 0, 48 * time.Hour},
		{"restored", 48 * time.Hour, time.Hour, time.Hour},
		{"it has delivered since", 10 * time.Minute, time.Hour, 10 * time.Minute},
		{"the clock was ahead", 48 * time.Hour, -time.Hour, 0},
		{"all is lost", 0, time.Hour, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := make(keyMarks)
				for key, ago := range map[string]time.Duration{"k": tt.kept, MarkRestored: tt.restored} {
					if ago != 0 {
						m[key] = time.Now().Add(-ago).UTC().Format(time.RFC3339)
					}
				}
				w := Watermark{Marks: m, Key: "k", Reach: 24 * time.Hour}
				last, err := w.Last(t.Context())
				if err != nil || last.IsZero() != (tt.want < 0) || !last.IsZero() && time.Since(last) != tt.want {
					t.Errorf("delivered %v ago (never: %t), %v; want %v", time.Since(last), last.IsZero(), err, tt.want)
				}
			})
		})
	}
}

// A restore while the clock was ahead hides no gap that comes after it.
func TestWatermarkAfterRestoreAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := keyMarks{MarkRestored: time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339), "k": time.Now().UTC().Format(time.RFC3339)}
		for _, want := range []time.Duration{0, 3 * time.Hour, 6 * time.Hour} {
			w := Watermark{Marks: m, Key: "k", Reach: 24 * time.Hour}
			if last, err := w.Last(t.Context()); err != nil || time.Since(last) != want {
				t.Errorf("delivered %v ago, %v; want %v", time.Since(last), err, want)
			}
			time.Sleep(3 * time.Hour)
		}
	})
}

type keyMarks map[string]string

func (m keyMarks) Checkpoint(_ context.Context, key string) (string, error) { return m[key], nil }

func (m keyMarks) SetCheckpoint(_ context.Context, key, value string) error {
	m[key] = value
	return nil
}
