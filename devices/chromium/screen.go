package chromium

import (
	"context"
	"crypto/sha256"
	_ "embed" // the script
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/lazyregexp"
)

//go:embed page.js
var script string

// A reading is what the script says of a page.
type reading struct {
	URL       string    `json:"url"`
	Title     string    `json:"title"`
	Text      string    `json:"text"`
	Structure []string  `json:"structure"`
	Actions   []element `json:"actions"`
}

// An element is one that something can be done with.
type element struct {
	Key     string   `json:"key"`
	Kind    string   `json:"kind"`
	Label   string   `json:"label"`
	Target  string   `json:"target"`
	Once    bool     `json:"once"`
	Input   string   `json:"input"`
	Options []string `json:"options"`
}

// A wish is what the script is to do.
type wish struct {
	Want  string `json:"want,omitempty"`
	Max   int    `json:"max,omitempty"` // of the text, in characters
	Kind  string `json:"kind,omitempty"`
	Value string `json:"value"`
}

func (d *device) run(tab context.Context, w wish, into any) error {
	arg, err := json.Marshal(w)
	if err != nil {
		return err
	}
	yes := true
	r, err := evaluate(tab, runtime.EvaluateParams{
		Expression:    "JSON.stringify((" + strings.TrimSpace(script) + ")(" + string(arg) + "))",
		ReturnByValue: &yes, UserGesture: &yes, Silent: &yes,
	})
	switch {
	case err != nil:
		return err
	case r.ExceptionDetails != nil:
		return fmt.Errorf("script of the explorer: %s", r.ExceptionDetails.Text)
	}
	var text string
	if err := json.Unmarshal(r.Result.Value, &text); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

func (d *device) Perceive(ctx context.Context) (devices.Screen, error) {
	var s devices.Screen
	err := d.call(ctx, lookLimit, "read the page", func(tab context.Context) error {
		var r reading
		err := d.run(tab, wish{}, &r)
		for range 3 { // a page that was left meanwhile
			if err == nil || tab.Err() != nil || d.dead() {
				break
			}
			r = reading{}
			err = d.run(tab, wish{}, &r)
		}
		if err != nil {
			return err
		}
		s = d.screen(r)
		s.PNG, err = picture(tab)
		return err
	})
	if err != nil {
		return devices.Screen{}, err
	}
	s.Faults = d.watch.take()
	if s.URL == "" {
		s.Faults = append(s.Faults, "the page could not be loaded")
	}
	return devices.Bounded(s), nil
}

// screen makes a screen of what the script says. Links that lead outside of the
// hosts are not actions: they cannot be followed.
func (d *device) screen(r reading) devices.Screen {
	s := devices.Screen{ID: fingerprint(r), Title: r.Title, Text: r.Text}
	if d.reach.allows(r.URL) {
		s.URL = r.URL
	}
	d.keys = make(map[string]string)
	for _, e := range r.Actions {
		scripted := strings.HasPrefix(strings.ToLower(e.Target), "javascript:")
		if e.Target != "" && !scripted && !d.reach.allows(e.Target) {
			continue
		}
		a := devices.Action{ID: short(e.Key), Kind: devices.Kind(e.Kind), Label: e.Label, Once: e.Once, Input: e.Input, Options: e.Options}
		if a.Label == "" {
			a.Label = "(no name)"
		}
		if !scripted {
			a.Target = devices.Plain(e.Target)
		}
		d.keys[a.ID] = e.Key
		s.Actions = append(s.Actions, a)
	}
	return s
}

// fingerprint names a screen by its path and its structure: what can be done, and
// the headings. Numbers do not count.
func fingerprint(r reading) string {
	parts := slices.Clone(r.Structure)
	slices.Sort(parts)
	return short(place(r.URL) + "\n" + strings.Join(parts, "\n"))
}

func short(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

var (
	digits = lazyregexp.New(`[0-9]+`)
	// Long words of letters and digits in an address are names of things, not of
	// pages.
	token = lazyregexp.New(`^[0-9a-fA-F]{8,}$|^[0-9A-Za-z_-]{20,}$|^[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}$`)
)

// place is an address without what changes from one thing to the next.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	steady := func(s string) string {
		if token.MatchString(s) && digits.MatchString(s) {
			return "*"
		}
		return digits.ReplaceAllString(s, "#")
	}
	var parts []string
	for _, p := range strings.Split(u.Path, "/") {
		parts = append(parts, steady(p))
	}
	out := u.Scheme + "://" + u.Host + strings.Join(parts, "/")
	var query []string
	for name, values := range u.Query() {
		for _, v := range values {
			query = append(query, steady(name)+"="+steady(v))
		}
	}
	slices.Sort(query)
	if len(query) > 0 {
		out += "?" + strings.Join(slices.Compact(query), "&")
	}
	if strings.HasPrefix(u.Fragment, "/") || strings.HasPrefix(u.Fragment, "!") {
		out += "#" + steady(u.Fragment) // a page of an application in one document
	}
	return out
}

// picture is what the tab shows, as a PNG within the limit; nil where it does not
// fit.
func picture(tab context.Context) ([]byte, error) {
	return shot(tab, []float64{1, 0.5, 0.25}, func(scale float64) (p page.CaptureScreenshotParams) {
		if scale != 1 {
			p.Clip = &page.Viewport{Width: 1280, Height: 860, Scale: scale}
		}
		return p
	})
}

// shot takes a picture at the largest scale whose PNG is within the limit.
func shot(tab context.Context, scales []float64, params func(scale float64) page.CaptureScreenshotParams) ([]byte, error) {
	for _, scale := range scales {
		p := params(scale)
		p.Format = page.CaptureScreenshotFormatPng
		r, err := chromedp.Call(tab, page.CaptureScreenshot, p)
		if err != nil {
			return nil, err
		}
		if len(r.Data) <= devices.MaxPNG {
			return r.Data, nil
		}
	}
	return nil, nil
}

func (d *device) Act(ctx context.Context, a devices.Action, value string) error {
	switch a.Kind {
	case devices.Navigate:
		return d.open(ctx, a.Target)
	case devices.Back:
		return d.back(ctx)
	}
	return d.call(ctx, actLimit, "do that", func(tab context.Context) error {
		key, known := d.keys[a.ID]
		if !known {
			var r reading
			if err := d.run(tab, wish{}, &r); err != nil {
				return err
			}
			d.screen(r)
			if key, known = d.keys[a.ID]; !known {
				return devices.Failed("the page has no %q any more", a.Label)
			}
		}
		var done struct {
			Gone  bool `json:"gone"`
			Enter bool `json:"enter"` // the key is to be pressed
			None  bool `json:"none"`  // it has no form
		}
		err := d.run(tab, wish{Want: key, Kind: string(a.Kind), Value: value}, &done)
		if err == nil && done.Enter {
			err = enter(tab)
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "navigated or closed"), err != nil && strings.Contains(err.Error(), "context was destroyed"):
			return nil // the page was left at once
		case err != nil:
			return err
		case done.Gone:
			return devices.Failed("the page has no %q any more", a.Label)
		case done.None:
			return devices.Failed("%q is not a field of a form that can be sent", a.Label)
		}
		d.flush(tab)
		return nil
	})
}

// flush lets the page do what an action has put off, such as the sending of a form,
// so that WaitIdle sees it begin.
func (d *device) flush(tab context.Context) {
	brief, cancel := context.WithTimeout(tab, 2*time.Second)
	defer cancel()
	yes := true
	_, _ = evaluate(brief, runtime.EvaluateParams{ // it fails when the page is left: that is what is waited for
		Expression: "new Promise((done) => setTimeout(done, 20))", AwaitPromise: &yes,
	})
}

// evaluate runs an expression in a world of scripts that those of the page cannot reach.
func evaluate(tab context.Context, p runtime.EvaluateParams) (r runtime.EvaluateResult, err error) {
	tree, err := chromedp.Call(tab, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return r, err
	}
	world, err := chromedp.Call(tab, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID, WorldName: "explorer"})
	if err != nil {
		return r, err
	}
	p.ContextID = world.ExecutionContextID
	return chromedp.Call(tab, runtime.Evaluate, p)
}

func (d *device) back(ctx context.Context) error {
	return d.call(ctx, actLimit, "go back", func(tab context.Context) error {
		h, err := chromedp.Call(tab, page.GetNavigationHistory, cdp.Empty{})
		if err != nil {
			return err
		}
		i := int(h.CurrentIndex) - 1
		if i < 0 || i >= len(h.Entries) || !d.reach.allows(h.Entries[i].URL) {
			return devices.Failed("there is no page to go back to")
		}
		_, err = chromedp.Call(tab, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[i].ID})
		return err
	})
}

var _ devices.Viewer = (*device)(nil)

func (d *device) Text(ctx context.Context) (string, error) {
	var r reading
	err := d.call(ctx, lookLimit, "read the page", func(tab context.Context) error {
		return d.run(tab, wish{Max: devices.MaxWholeText}, &r)
	})
	if err != nil {
		return "", err
	}
	return devices.Plainly(r.Text, devices.MaxWholeText), nil
}

// tallest is how much of a page, in its own pixels, is in one picture.
const tallest = 10_000

func (d *device) Picture(ctx context.Context, whole bool) (png []byte, err error) {
	err = d.call(ctx, lookLimit, "take a picture", func(tab context.Context) error {
		if !whole {
			png, err = picture(tab)
			return err
		}
		m, err := chromedp.Call(tab, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		size := page.Viewport{Width: 1280, Height: 860}
		if c := m.CSSContentSize; c != nil {
			size.Width, size.Height = min(max(c.Width, 1), tallest), min(max(c.Height, 1), tallest)
		}
		png, err = pictureOf(tab, size)
		return err
	})
	if err == nil && len(png) == 0 {
		return nil, devices.Failed("a picture of this page is too large")
	}
	return png, err
}

func pictureOf(tab context.Context, size page.Viewport) ([]byte, error) {
	yes := true
	return shot(tab, []float64{1, 0.5, 0.25, 0.1}, func(scale float64) page.CaptureScreenshotParams {
		size.Scale = scale
		return page.CaptureScreenshotParams{Clip: &size, CaptureBeyondViewport: &yes}
	})
}

func enter(tab context.Context) error {
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeChar, input.DispatchKeyEventTypeKeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13}
		if kind == input.DispatchKeyEventTypeChar {
			p.Text, p.UnmodifiedText = "\r", "\r"
		}
		if _, err := chromedp.Call(tab, input.DispatchKeyEvent, p); err != nil {
			return err
		}
	}
	return nil
}
