package messaging

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/tools"
)

// Limits of a timeout, and what is meant when there is none.
const (
	minTimeout = time.Second
	maxTimeout = 24 * time.Hour
)

// timeout reads an optional time limit; 0 when absent.
func timeout(field, s string) (time.Duration, error) {
	if strings.TrimSpace(s) == "" {
		return 0, nil
	}
	d, err := tools.ParseDuration(s, time.Second)
	if err != nil {
		return 0, fmt.Errorf("field %s: %.40q: %w", field, s, err)
	}
	if d < minTimeout || d > maxTimeout {
		return 0, fmt.Errorf("field %s: %.40q: want 1s to 24h", field, s)
	}
	return d, nil
}
