package agentsystem

import (
	"testing"
	"time"

	"github.com/claybot/claybot/worker"
)

// A death is charged again only when the run had about the same age, and the control
// grows with that age.
func TestTries(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name  string
		lived []time.Duration
		n     int
		wait  time.Duration
	}{
		{"never", nil, 0, 0},
		{"once", []time.Duration{s}, 0, 10 * s},
		{"at once", []time.Duration{0}, 0, 2 * s},
		{"twice alike", []time.Duration{s, 2 * s}, 1, 30 * s},
		{"much later", []time.Duration{s, 10 * s}, 0, 40 * s},
		{"no longer than half a minute", []time.Duration{3 * s, 3 * s, 3 * s}, 2, 30 * s},
		{"but longer than it lived", []time.Duration{s, 70 * s}, 0, 280 * s},
		{"twice as long after a charge", []time.Duration{70 * s, 71 * s}, 1, 568 * s},
		{"late, and later", []time.Duration{70 * s, 71 * s, 90 * s}, 0, 360 * s},
		{"at ages that differ, in the end", []time.Duration{s, 20 * s, s, 30 * s, s, 30 * s, s}, 3, 0},
		{"given up", []time.Duration{s, s, s, s}, 3, 0},
		{"even then", []time.Duration{s, s, s, s, 50 * s}, 4, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var x worker.Charges
			for _, d := range tt.lived {
				x = x.After(d)
			}
			if x.N != tt.n || x.Control() != tt.wait {
				t.Errorf("got %d charges and a control of %v, want %d and %v", x.N, x.Control(), tt.n, tt.wait)
			}
			if x.GivenUp() != (tt.n >= 3) || x.Deadly() != (tt.n > 3) {
				t.Errorf("given up %v, deadly %v", x.GivenUp(), x.Deadly())
			}
		})
	}
}
