package cron

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
)

const (
	maxRetries     = 10
	maxName        = 200 // characters
	gateTime       = time.Minute
	maxGateTime    = time.Hour
	defaultMisfire = misfireSkip
)

// A definition is a parsed TASK.md. It is immutable.
type definition struct {
	spec    connectors.TaskSpec // as the file has it
	uid     string
	enabled bool
	plan    plan // without its anchor
	route   target
	agent   claybot.AgentID // that runs the task; empty: its own agent

	gate     string
	gateTime time.Duration

	text      string // hash of the whole file
	timing    string // hash of the settings that determine its instants
	zone      string // default zone when it was read
	agentLine int    // of route or agent, for warnings
}

// aliases are the other names of settings.
var aliases = map[string]string{
	"taskId": "uid", "deleteAfterRun": "once", "delete_after_run": "once", "gate": "gate.command",
}

// known are the settings of a task.
var known = []string{
	"uid", "name", "schedule", "every", "at", "timezone", "enabled", "description", "misfire",
	"once", "owner", "route", "agent", "flow", "gate.command", "gate.timeout", "retries",
}

// A reader takes the settings of one file.
type reader struct{ *schedule.Settings }

// readDefinition parses a TASK.md. zone is the default time zone. The error is
// a *configs.LineError; notes are about unknown settings. It never panics.
func readDefinition(text string, zone *time.Location) (d definition, notes []connectors.Problem, err error) {
	if !utf8.ValidString(text) {
		valid := strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\uFFFD")[0]
		return d, nil, &configs.LineError{Line: strings.Count(valid, "\n") + 1, Text: "the text is not UTF-8"}
	}
	front, err := configs.ReadFrontmatter(text)
	var line *configs.LineError
	switch {
	case errors.As(err, &line):
		return d, nil, err
	case err != nil:
		return d, nil, &configs.LineError{Line: 1, Text: err.Error()}
	}
	r := reader{schedule.ReadSettings(front.Fields, known, aliases)}
	d = definition{text: digest(text), zone: zone.String(), gateTime: gateTime}
	d.spec = connectors.TaskSpec{
		Name: connectors.OneLine(r.Text("name"), maxName), Description: r.Text("description"),
		Schedule: r.Text("schedule"), Every: r.Text("every"), At: r.Text("at"), Timezone: r.Text("timezone"),
		Misfire: r.Text("misfire"), Owner: r.Text("owner"), Route: r.Text("route"), Agent: r.Text("agent"), Flow: r.Text("flow"),
		Prompt: front.Body,
	}
	d.uid = r.uid()
	d.enabled = r.Flag("enabled", true)
	d.spec.Once = r.Flag("once", false)
	d.spec.Retries = r.retries()
	d.plan.zone = zone
	r.Read("timezone", func(v string) (err error) { d.plan.zone, err = loadZone(v); return err })
	r.times(&d)
	r.misfire(&d)
	r.Read("owner", checkOwner)
	r.Read("route", func(v string) (err error) {
		d.route, err = parseRoute(v)
		d.agentLine = r.Fields["route"].Line
		return err
	})
	r.Read("agent", func(v string) error {
		d.agent, d.agentLine = claybot.AgentID(v), r.Fields["agent"].Line
		return d.agent.Validate()
	})
	r.gate(&d)
	if d.spec.Prompt == "" {
		r.Fail(configs.Field{Line: strings.Count(strings.TrimRight(text, "\n"), "\n") + 1}, "the prompt is empty")
	}
	d.timing = digest(strings.Join([]string{d.spec.Schedule, d.spec.Every, d.spec.At, d.plan.zone.String()}, "\x00"))
	return d, r.Notes, r.Err
}

func (r reader) uid() string {
	f, ok := r.Fields["uid"]
	if !ok {
		r.Fail(configs.Field{Line: 1}, "uid is missing")
	} else if claybot.AgentID(f.Value).Validate() != nil {
		r.Fail(f, "uid: %.40q is not a cuid2 (24 to 32 characters a-z and 0-9, first a letter)", f.Value)
	}
	return f.Value
}

func (r reader) retries() (n int) {
	r.Read("retries", func(text string) (err error) {
		if n, err = strconv.Atoi(text); err != nil || n < 0 || n > maxRetries {
			return fmt.Errorf("%q is not a number from 0 to %d", text, maxRetries)
		}
		return nil
	})
	return n
}

// times reads the one setting of schedule, every and at.
func (r reader) times(d *definition) {
	var found []configs.Field
	for _, key := range [...]string{"schedule", "every", "at"} {
		if f, ok := r.Fields[key]; ok {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		r.Fail(configs.Field{Line: 1}, "one of schedule, every and at is missing")
		return
	case 1:
	default:
		r.Fail(found[1], "%s and %s: want one of schedule, every and at", found[0].Key, found[1].Key)
		return
	}
	r.Read("schedule", func(v string) (err error) {
		if distance, ok := strings.CutPrefix(v, "@every "); ok {
			d.plan.every, err = parseEvery(distance)
			return err
		}
		if err = CheckSchedule(v); err == nil {
			d.plan.wall, err = parseWall(v)
		}
		return err
	})
	r.Read("every", func(v string) (err error) { d.plan.every, err = parseEvery(v); return err })
	if d.plan.zone != nil { // nil: the zone is invalid, which is reported already
		r.Read("at", func(v string) (err error) { d.plan.at, err = parseAt(v, d.plan.zone); return err })
	}
}

// misfire reads the misfire rule. By default a single instant is never skipped,
// because no other follows.
func (r reader) misfire(d *definition) {
	d.plan.misfire.rule = defaultMisfire
	if _, ok := r.Fields["at"]; ok {
		d.plan.misfire.rule = misfireOnce
	}
	r.Read("misfire", func(v string) (err error) { d.plan.misfire, err = parseMisfire(v); return err })
}

func (r reader) gate(d *definition) {
	d.gate = r.Text("gate.command")
	r.Read("gate.timeout", func(v string) (err error) {
		if d.gateTime, err = schedule.ParseDuration(v); err == nil && (d.gateTime <= 0 || d.gateTime > maxGateTime) {
			err = fmt.Errorf("%q is not a time up to %v", v, maxGateTime)
		}
		return err
	})
}

func checkOwner(v string) error {
	connector, user, _ := strings.Cut(v, "/")
	if connector == "" || user == "" {
		return fmt.Errorf("%q is not of the form connector/user", v)
	}
	return nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// A setting is a key of a TASK.md with its value; nil: unchanged.
type setting struct {
	key   string
	value *string
}

// front returns the front matter of a new task.
func front(uid string, t connectors.TaskSpec) configs.Frontmatter {
	f := configs.Frontmatter{Body: strings.TrimSpace(t.Prompt)}
	var retries, once string
	if t.Retries != 0 {
		retries = strconv.Itoa(t.Retries)
	}
	if t.Once {
		once = "true"
	}
	for _, s := range []setting{
		{"uid", &uid},
		{"name", &t.Name},
		{"description", &t.Description},
		{"schedule", &t.Schedule},
		{"every", &t.Every},
		{"at", &t.At},
		{"timezone", &t.Timezone},
		{"misfire", &t.Misfire},
		{"once", &once},
		{"retries", &retries},
		{"owner", &t.Owner},
		{"route", &t.Route},
		{"agent", &t.Agent},
		{"flow", &t.Flow},
	} {
		f.Set(s.key, *s.value)
	}
	return f
}

// change applies c to the settings of a file. Setting one of schedule, every
// and at removes the others.
func change(f *configs.Frontmatter, c connectors.TaskChange) {
	times := []setting{{"schedule", c.Schedule}, {"every", c.Every}, {"at", c.At}}
	if slices.ContainsFunc(times, func(s setting) bool { return s.value != nil && strings.TrimSpace(*s.value) != "" }) {
		for i := range times {
			times[i].value = cmp.Or(times[i].value, new(string))
		}
	}
	for _, s := range append(times, []setting{
		{"name", c.Name},
		{"description", c.Description},
		{"timezone", c.Timezone},
		{"misfire", c.Misfire},
		{"route", c.Route},
		{"enabled", textOf(c.Enabled)},
		{"once", textOf(c.Once)},
		{"retries", textOf(c.Retries)},
	}...) {
		if s.value == nil {
			continue
		}
		for _, old := range slices.Clone(f.Fields) {
			if aliases[old.Key] == s.key {
				f.Set(old.Key, "")
			}
		}
		f.Set(s.key, strings.TrimSpace(*s.value))
	}
	if c.Prompt != nil {
		f.Body = strings.TrimSpace(*c.Prompt)
	}
}

func textOf[T any](v *T) *string {
	if v == nil {
		return nil
	}
	text := fmt.Sprint(*v)
	return &text
}
