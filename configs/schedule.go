package configs

import (
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// Cron are the settings of scheduled tasks.
type Cron struct {
	Zone    *time.Location `key:"timezone" class:"harmless"`                                // of tasks that name none; nil in a zero Config only
	Gates   bool           `key:"gates" local:"yes" bad:"false" off:"no gate command runs"` // gate commands of tasks' files may run
	Enabled bool           `key:"enabled"`
	// MaxTasks and MaxNewPerHour are what agents may create for one person.
	MaxTasks      int `key:"max_tasks" limits:"0..10000"`
	MaxNewPerHour int `key:"max_new_per_hour" limits:"0..10000"`

	faults // why tasks are off by mistake
}

// The defaults of MaxTasks and MaxNewPerHour.
const (
	DefaultTasks       = 50
	DefaultHourlyTasks = 20
)

// Heartbeat are the settings of the heartbeat.
type Heartbeat struct {
	Every         time.Duration  `key:"every" limits:"5m..8784h"`                                 // between two ticks
	ActiveHours   string         `key:"active_hours" kind:"hours"`                                // "08:00-22:00", which may pass midnight; empty: always
	Zone          *time.Location `key:"timezone" class:"harmless"`                                // of ActiveHours; nil in a zero Config only
	MaxUnattended int            `key:"max_unattended" limits:"1..1000000"`                       // ticks without a message of a person, then it pauses
	Route         string         `key:"route" class:"destination" kind:"route"`                   // "connector/channel"; empty: that of the last message
	Gates         bool           `key:"gates" local:"yes" bad:"false" off:"no gate command runs"` // gate commands of the heartbeat's files may run
	Enabled       bool           `key:"enabled"`

	faults // why the heartbeat is off by mistake
}

var hours = lazyregexp.New(`^([0-9]{1,2}):([0-9]{2}) *- *([0-9]{1,2}):([0-9]{2})$`)

// activeHours reads "8:00 - 22:00" and returns it as "08:00-22:00"; the whole
// day, "00:00-24:00", is empty.
func activeHours(v string) (string, error) {
	m := hours.FindStringSubmatch(v)
	if m == nil {
		return "", fmt.Errorf("%s is not of the form 08:00-22:00", quote(v))
	}
	from, to := clock(m[1], m[2]), clock(m[3], m[4])
	switch {
	case from == "00:00" && to == "24:00":
		return "", nil
	case to == "24:00":
		to = "00:00" // the same moment, by the name that all clocks know
	}
	switch {
	case from >= "24:00" || to >= "24:00" || m[2] >= "60" || m[4] >= "60":
		return "", fmt.Errorf("%s holds a time that no clock shows", quote(v))
	case from == to:
		return "", errors.New("the hours begin and end at the same time; leave them out for the whole day")
	}
	return from + "-" + to, nil
}

// clock joins hours and minutes; times compare as their texts do.
func clock(h, m string) string { return ("0" + h)[len(h)-1:] + ":" + m }
