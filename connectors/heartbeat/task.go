package heartbeat

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/lazyregexp"
)

const maxTitle = 200 // characters

// A task is a parsed file. It is immutable.
type task struct {
	id, title, prompt string
	gate              string
	enabled           bool
	every             time.Duration // 0: the configured one
	hours             *hours        // nil: the configured ones

	everyText, hoursText string // as the file has them
	text                 string // the whole file
}

// byTitle orders the tasks of a message.
func byTitle(a, b *task) int {
	return cmp.Or(cmp.Compare(a.title, b.title), cmp.Compare(a.id, b.id))
}

func checkID(id string) error {
	if !schedule.ValidName(id) {
		return fmt.Errorf("invalid id %.80q: use at most 64 of a-z, 0-9, dots, - and _, and no dot at the beginning", id)
	}
	return nil
}

// The settings of a file.
const (
	keyTitle   = "title"
	keyName    = "name" // the same as title
	keyEvery   = "every"
	keyEnabled = "enabled"
	keyGate    = "when"
	keyHours   = "active_hours"
)

// readTask parses the file of a task. A file without a prompt is not a task. The
// error is a *configs.LineError; notes are minor mistakes. It never panics.
func readTask(id, text string) (t task, notes []connectors.Problem, err error) {
	t = task{id: id, text: text}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	front, err := configs.ReadFrontmatter(text)
	switch {
	case errors.Is(err, configs.ErrNoFrontmatter):
		front.Body = strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"))
	case err != nil:
		return t, nil, err
	}
	t.prompt = front.Body
	r := schedule.ReadSettings(front.Fields, []string{keyTitle, keyEvery, keyEnabled, keyGate, keyHours}, map[string]string{keyName: keyTitle})
	t.title = connectors.OneLine(r.Text(keyTitle), maxTitle)
	t.title = cmp.Or(t.title, connectors.OneLine(heading(t.prompt), maxTitle), id)
	t.gate, t.everyText, t.hoursText = r.Text(keyGate), r.Text(keyEvery), r.Text(keyHours)
	t.enabled = r.Flag(keyEnabled, true)
	t.every = every(r)
	r.Read(keyHours, func(v string) error {
		h, err := parseHours(v)
		t.hours = &h
		return err
	})
	return t, r.Notes, r.Err
}

// every returns the interval of a task, raised to the minimum if it is too short.
func every(r *schedule.Settings) (d time.Duration) {
	r.Read(keyEvery, func(v string) (err error) {
		if d, err = parseEvery(v); err == nil && d < minEvery {
			d = minEvery
			r.Notes = append(r.Notes, connectors.Problem{Line: r.Fields[keyEvery].Line, Text: keyEvery + ": " + tooShort(v) + "; it runs every 5m"})
		}
		return err
	})
	return d
}

var headingForm = lazyregexp.New(`^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)

// heading returns the first heading of a Markdown text; empty for none.
func heading(text string) string {
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		start := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(start, fence) {
				fence = ""
			}
		case strings.HasPrefix(start, "```"), strings.HasPrefix(start, "~~~"):
			fence = start[:3]
		default:
			if m := headingForm.FindStringSubmatch(line); m != nil && m[1] != "" {
				return m[1]
			}
		}
	}
	return ""
}
