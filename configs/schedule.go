package configs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Cron are the settings of scheduled tasks.
type Cron struct {
	Enabled bool
	Gates   bool           // gate commands of tasks' files may run
	Zone    *time.Location // of tasks that name none; nil in a zero Config only
	faults  reasons
}

// Heartbeat are the settings of the heartbeat.
type Heartbeat struct {
	Enabled       bool
	Gates         bool           // gate commands of the heartbeat's files may run
	Every         time.Duration  // between two ticks, at least MinBeat
	ActiveHours   string         // "08:00-22:00", which may pass midnight; empty: always
	Zone          *time.Location // of ActiveHours; nil in a zero Config only
	MaxUnattended int            // beats without a word of a person, then it rests
	Route         string         // "connector/channel"; empty: where somebody wrote last
	faults        reasons
}

// The bounds of the heartbeat.
const (
	MinBeat = 5 * time.Minute
	maxBeat = 366 * 24 * time.Hour
	maxRest = 1_000_000
)

func cronKeys() []key[Cron] {
	return []key[Cron]{
		text("timezone", func(r *reader, at place, v string, c *Cron) { r.zone(at, v, &c.Zone) }),
		{"gates", func(r *reader, at place, n *yaml.Node, c *Cron) { r.gates(at, n, &c.Gates) }},
		text("enabled", func(r *reader, at place, v string, c *Cron) { r.truth(at, v, &c.Enabled) }),
	}
}

func heartbeatKeys() []key[Heartbeat] {
	return []key[Heartbeat]{
		text("every", func(r *reader, at place, v string, h *Heartbeat) {
			every, err := time.ParseDuration(v)
			if err != nil || every < MinBeat || every > maxBeat {
				r.warn(at, "%s is not a duration such as 30m or 2h, from %.0fm to %.0fh; ignored", quote(v), MinBeat.Minutes(), maxBeat.Hours())
				return
			}
			h.Every = every
		}),
		text("active_hours", func(r *reader, at place, v string, h *Heartbeat) {
			hours, err := activeHours(v)
			if err != nil {
				r.warn(at, "%v; ignored", err)
				return
			}
			h.ActiveHours = hours
		}),
		text("timezone", func(r *reader, at place, v string, h *Heartbeat) { r.zone(at, v, &h.Zone) }),
		text("max_unattended", func(r *reader, at place, v string, h *Heartbeat) {
			n, ok := r.number(at, v, 1, maxRest)
			store(&h.MaxUnattended, n, ok)
		}),
		text("route", func(r *reader, at place, v string, h *Heartbeat) {
			route, connector, err := parseRoute(v)
			if err != nil {
				r.refuse(item{at, v}, connector, connectorNames(), err)
				return
			}
			h.Route = route
		}),
		{"gates", func(r *reader, at place, n *yaml.Node, h *Heartbeat) { r.gates(at, n, &h.Gates) }},
		text("enabled", func(r *reader, at place, v string, h *Heartbeat) { r.truth(at, v, &h.Enabled) }),
	}
}

// parseTruth reads each of the words that YAML has had for true and false.
func parseTruth(v string) (truth, ok bool) {
	switch strings.ToLower(v) {
	case "true", "on", "yes":
		return true, true
	case "false", "off", "no":
		return false, true
	}
	return false, false
}

func (r *reader) truth(at place, v string, to *bool) {
	truth, ok := parseTruth(v)
	if !ok {
		r.warn(at, "%s is not one of true, false; ignored", quote(v))
	}
	store(to, truth, ok)
}

// gates says whether commands may run. Whatever is not understood means no: a
// typing mistake must not run any.
func (r *reader) gates(at place, n *yaml.Node, to *bool) {
	*to = false
	if n.Kind != yaml.ScalarNode {
		r.warn(at, "want true or false, found %s; ignored", kind(n))
		instead(r, len(r.warnings)-1, "using false")
		return
	}
	yes, ok := parseTruth(strings.TrimSpace(n.Value))
	if !ok {
		r.warn(at, "%s is not one of true, false; ignored", quote(n.Value))
		instead(r, len(r.warnings)-1, "using false")
	}
	*to = yes
}

// zone sets a time zone by its IANA name.
func (r *reader) zone(at place, v string, to **time.Location) {
	zone, err := time.LoadLocation(v)
	if err != nil || v == "" || v == "Local" { // which are other zones on other machines
		r.warn(at, "%s is not a time zone such as Europe/Berlin or UTC; ignored", quote(v))
		return
	}
	*to = zone
}

var hours = regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2}) *- *([0-9]{1,2}):([0-9]{2})$`)

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
