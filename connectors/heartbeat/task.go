package heartbeat

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
)

const maxTitle = 200 // characters

// A task is what one file says. It is never changed.
type task struct {
	id, title, prompt string
	gate              string
	enabled           bool
	every             time.Duration // 0: that of the configuration
	hours             *hours        // nil: those of the configuration

	everyText, hoursText string // as the file has them
	text                 string // the whole file
}

// byTitle is the order in which tasks stand in a message.
func byTitle(a, b *task) int {
	return cmp.Or(cmp.Compare(a.title, b.title), cmp.Compare(a.id, b.id))
}

// idForm are the names that files may have.
var idForm = regexp.MustCompile(`^[a-z0-9_-][a-z0-9._-]*$`) // and at most 64 bytes

func checkID(id string) error {
	if len(id) > 64 || !idForm.MatchString(id) {
		return fmt.Errorf("%.80q is no id: it has a-z, 0-9, dots, - and _, at most 64 of them, and no dot at the beginning", id)
	}
	return nil
}

// idOf makes an id from a title.
func idOf(title string) string {
	const most = 64
	var b strings.Builder
	for _, c := range strings.ToLower(title) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	id := strings.Trim(b.String(), "-._")
	id = strings.TrimRight(id[:min(len(id), most)], "-._")
	return cmp.Or(id, "task")
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

// A reader takes the settings of one file. The first error wins.
type reader struct {
	fields map[string]configs.Field
	notes  []connectors.Problem // of what does not keep the task from beating
	err    error
}

// readTask reads the file of a task. A file without a prompt has none, and is no
// task. The error is a *configs.LineError; notes are mistakes that change
// nothing, or little. It never panics.
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
	r := newReader(front.Fields)
	t.title = connectors.OneLine(r.fields[keyTitle].Value, maxTitle)
	t.title = cmp.Or(t.title, connectors.OneLine(heading(t.prompt), maxTitle), id)
	t.gate, t.everyText, t.hoursText = r.fields[keyGate].Value, r.fields[keyEvery].Value, r.fields[keyHours].Value
	t.enabled = r.flag(keyEnabled, true)
	t.every = r.every()
	if f, ok := r.fields[keyHours]; ok {
		h, err := parseHours(f.Value)
		if t.hours = &h; err != nil {
			r.fail(f, "%s: %v", keyHours, err)
		}
	}
	return t, r.notes, r.err
}

func newReader(fields []configs.Field) *reader {
	r := &reader{fields: make(map[string]configs.Field)}
	for _, f := range fields {
		key := f.Key
		if key == keyName {
			key = keyTitle
		}
		f.Value = strings.TrimSpace(f.Value)
		if _, twice := r.fields[key]; twice {
			r.fail(f, "%s and %s are the same setting; leave one of them out", keyTitle, keyName)
		}
		if !slices.Contains([]string{keyTitle, keyEvery, keyEnabled, keyGate, keyHours}, key) {
			r.notes = append(r.notes, connectors.Problem{Line: f.Line, Text: fmt.Sprintf("the setting %s is not known and has no effect", f.Key)})
			continue
		}
		if f.Value != "" {
			r.fields[key] = f
		}
	}
	return r
}

func (r *reader) fail(f configs.Field, format string, args ...any) {
	if r.err == nil {
		r.err = &configs.LineError{Line: f.Line, Text: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) flag(key string, usual bool) bool {
	f, ok := r.fields[key]
	if !ok {
		return usual
	}
	switch strings.ToLower(f.Value) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	r.fail(f, "%s: %.40q is not one of true and false", key, f.Value)
	return usual
}

// every is the distance of the task. One that is too short is taken for the
// shortest: whoever wrote it wants the task to beat.
func (r *reader) every() time.Duration {
	f, ok := r.fields[keyEvery]
	if !ok {
		return 0
	}
	d, err := parseEvery(f.Value)
	switch {
	case err != nil:
		r.fail(f, "%s: %v", keyEvery, err)
	case d < minEvery:
		r.notes = append(r.notes, connectors.Problem{Line: f.Line, Text: keyEvery + ": " + tooShort(f.Value) + "; it beats every 5m"})
		return minEvery
	}
	return d
}

var headingForm = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$`)

// heading is the first heading of a Markdown text; empty for none.
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
