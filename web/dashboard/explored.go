package dashboard

import (
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
)

// The rows that a page shows.
const (
	screenRows     = 200
	transitionRows = 200
	troubleRows    = 50
)

// An exploredView is what the explorer found.
type exploredView struct {
	URL, Reason, Report string
	Iterations          int
	Map                 string // address of the picture
	Screens             []screenView
	MoreScreens         int
	Transitions         []transition
	MoreTransitions     int
	DeadEnds, Errors    []string
	Counts              struct{ Screens, Transitions, DeadEnds int }
}

// A screenView is one screen that was found. Picture is an address.
type screenView struct {
	ID, Title, URL string
	Depth          int
	Dead           bool
	Picture        string
}

func (s screenView) Name() string { return cmp.Or(s.Title, s.URL, s.ID) }

// A transition is one way from a screen to another.
type transition struct {
	From   label `json:"from"`
	Action label `json:"action"`
	To     label `json:"to"`
}

// A label is a text in JSON, or something that has one.
type label string

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON.
func (l *label) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*l = label(text)
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, name := range []string{"label", "title", "text", "message", "screen", "id"} {
			if json.Unmarshal(members[name], &text) == nil && text != "" {
				*l = label(text)
				return nil
			}
		}
	}
	*l = label(raw)
	return nil
}

// exploredResult is the output of the explorer, as far as it is shown.
type exploredResult struct {
	URL         label     `json:"url"`
	Reason      label     `json:"reason"`
	Report      label     `json:"report"`
	Iterations  int       `json:"iterations"`
	Map         label     `json:"map"`
	DeadEnds    []label   `json:"deadEnds"`
	Errors      []trouble `json:"errors"`
	Transitions []struct {
		transition
		Label label `json:"label"` // of the action, for people
	} `json:"transitions"`
	Screens []struct {
		ID    label `json:"id"`
		Title label `json:"title"`
		URL   label `json:"url"`
		File  label `json:"file"`
		Depth int   `json:"depth"`
		Dead  bool  `json:"dead"`
	}
}

// viewExplored returns the view of an explorer run; nil for other runs.
func viewExplored(run claybot.Run, result json.RawMessage) *exploredView {
	var out exploredResult
	_ = json.Unmarshal(result, &out) // unreadable fields stay empty
	if len(out.Screens) == 0 && out.Map == "" {
		return nil
	}
	v := &exploredView{
		URL: string(out.URL), Reason: string(out.Reason), Report: string(out.Report), Iterations: out.Iterations,
		Map: fileAddress(run.Agent, string(out.Map)),
	}
	v.Reason = cmp.Or(stopWords[v.Reason], v.Reason)
	v.Counts.Screens, v.Counts.Transitions, v.Counts.DeadEnds = len(out.Screens), len(out.Transitions), len(out.DeadEnds)
	names := make(map[string]string)
	for _, s := range out.Screens {
		one := screenView{ID: string(s.ID), Title: string(s.Title), URL: string(s.URL), Depth: s.Depth, Dead: s.Dead, Picture: fileAddress(run.Agent, string(s.File))}
		one.Dead = one.Dead || slices.Contains(out.DeadEnds, s.ID)
		names[one.ID] = one.Name()
		v.Screens = append(v.Screens, one)
	}
	v.Screens, v.MoreScreens = cut(v.Screens, screenRows)
	for _, t := range out.Transitions {
		v.Transitions = append(v.Transitions, transition{label(named(names, t.From)), cmp.Or(t.Label, t.Action), label(named(names, t.To))})
	}
	v.Transitions, v.MoreTransitions = cut(v.Transitions, transitionRows)
	for _, id := range out.DeadEnds[:min(len(out.DeadEnds), troubleRows)] {
		v.DeadEnds = append(v.DeadEnds, named(names, id))
	}
	for _, t := range out.Errors[:min(len(out.Errors), troubleRows)] {
		where := named(names, t.Screen)
		v.Errors = append(v.Errors, strings.TrimPrefix(where+": "+string(t.Text), ": "))
	}
	return v
}

// A trouble is what went wrong at a screen.
type trouble struct{ Screen, Text label }

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON.
func (t *trouble) UnmarshalJSON(raw []byte) error {
	var at struct{ Screen label }
	_ = json.Unmarshal(raw, &at) // it may be a plain text
	t.Screen = at.Screen
	return t.Text.UnmarshalJSON(raw)
}

func named(names map[string]string, id label) string { return cmp.Or(names[string(id)], string(id)) }

// fileAddress returns the URL of a picture of an agent.
func fileAddress(agent claybot.AgentID, file string) string {
	if file == "" {
		return ""
	}
	return "/ui/agents/" + url.PathEscape(string(agent)) + "/pictures/" + url.PathEscape(file)
}

// pictureKinds are the image types that a page shows, and whether a browser may
// open one directly: SVG may contain scripts.
var pictureKinds = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true, "image/svg+xml": false,
}

// picturePolicy forbids a picture everything but inline styles, even if a
// browser opens it directly.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

// picture serves an image of an agent, and no other file.
func (b *agentPages) picture(w http.ResponseWriter, r *http.Request) {
	f, content, err := b.files.OpenFile(r.Context(), claybot.AgentID(r.PathValue("id")), r.PathValue("file"))
	if err != nil {
		b.fail(w, r, err)
		return
	}
	defer func() { _ = content.Close() }() // it was only read
	kind, _, err := mime.ParseMediaType(f.MIMEType)
	alone, known := pictureKinds[strings.ToLower(kind)]
	if err != nil || !known {
		b.fail(w, r, errPicture)
		return
	}
	h := w.Header()
	h.Set("Content-Type", strings.ToLower(kind))
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Security-Policy", picturePolicy)
	h.Set("Cache-Control", "private, max-age=3600")
	if !alone {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.Copy(w, content) // the client may be gone
}
