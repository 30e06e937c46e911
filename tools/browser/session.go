package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

type session struct {
	b   *Browsers
	key string
	// turn holds one while a call uses the browser. The call that has it may use device.
	turn   workspace.Turn
	device devices.Device // nil: it is not open yet, or no more

	mu   sync.Mutex
	last devices.Screen // as it was shown last
	used time.Time
	idle *time.Timer
}

func (s *session) screen() devices.Screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *session) open(ctx context.Context, address string) error {
	return s.device.Act(ctx, devices.Action{Kind: devices.Navigate, Target: address}, "")
}

func (s *session) look(ctx context.Context) (devices.Screen, error) {
	if err := s.device.WaitIdle(ctx); err != nil {
		return devices.Screen{}, err
	}
	now, err := s.device.Perceive(ctx)
	if err != nil {
		return devices.Screen{}, err
	}
	now.PNG = nil
	s.mu.Lock()
	s.last = now
	s.mu.Unlock()
	return now, nil
}

func (s *session) shown(ctx context.Context, what string, err error) (tools.Result, error) {
	if err != nil {
		return tools.Result{}, err
	}
	now, err := s.look(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Text: describe(now, now.Text), Untrusted: true, What: what}, nil
}

func (s *session) read(ctx context.Context) (tools.Result, error) {
	now, err := s.look(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	text := now.Text
	if v, ok := s.device.(devices.Viewer); ok {
		if text, err = v.Text(ctx); err != nil {
			return tools.Result{}, err
		}
	}
	return tools.Result{Text: describe(now, text), Untrusted: true}, nil
}

func (s *session) click(ctx context.Context, number int) (tools.Result, error) {
	if number == 0 {
		return s.shown(ctx, texts.DidGoBack, s.device.Act(ctx, devices.Action{Kind: devices.Back}, ""))
	}
	a, err := s.action(number)
	if err != nil {
		return tools.Result{}, err
	}
	if a.Kind != devices.Click {
		return tools.Result{}, invalid("field action: %d is a field; use browser_type", number)
	}
	return s.shown(ctx, fmt.Sprintf(texts.DidClick, strconv.Quote(a.Label)), s.device.Act(ctx, a, ""))
}

func (s *session) write(ctx context.Context, number int, text string, submit bool) (tools.Result, error) {
	a, err := s.action(number)
	if err != nil {
		return tools.Result{}, err
	}
	if a.Kind != devices.Type && a.Kind != devices.Select {
		return tools.Result{}, invalid("field field: %d is not a field; use browser_click", number)
	}
	if submit && a.Kind != devices.Type {
		return tools.Result{}, invalid("field submit: a choice cannot be sent; click the button of the form")
	}
	did := texts.DidFillIn
	if err := s.device.Act(ctx, a, text); err != nil {
		return tools.Result{}, err
	}
	if submit {
		did = texts.DidFillAndSend
		a.Kind = devices.Submit
		if err := s.device.Act(ctx, a, ""); err != nil {
			return tools.Result{}, err
		}
	}
	return s.shown(ctx, fmt.Sprintf(did, strconv.Quote(a.Label)), nil)
}

func (s *session) action(number int) (devices.Action, error) {
	last := s.screen()
	if number < 1 || number > len(last.Actions) {
		return devices.Action{}, invalid("the page has no number %d; it has 1 to %d, browser_read shows them", number, len(last.Actions))
	}
	return last.Actions[number-1], nil
}

func (s *session) screenshot(ctx context.Context, env tools.Env, full bool) (tools.Result, error) {
	v, ok := s.device.(devices.Viewer)
	if !ok {
		return tools.Result{}, &tools.Fault{Code: faultUnavailable, Text: "this browser takes no pictures"}
	}
	if err := s.device.WaitIdle(ctx); err != nil {
		return tools.Result{}, err
	}
	picture, err := v.Picture(ctx, full)
	if err != nil {
		return tools.Result{}, err
	}
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		return tools.Result{}, &tools.Fault{Code: faultBrowser, Text: "the browser's picture cannot be read; try again"}
	}
	name := "screenshot-" + time.Now().UTC().Format("20060102-150405") + ".png"
	file, err := s.b.cfg.SaveFile(ctx, env, name, "image/png", picture)
	if err != nil {
		return tools.Result{}, fmt.Errorf("keep the picture: %w", err)
	}
	where := s.screen().URL
	text := fmt.Sprintf("A picture of %s, %d by %d pixels, is kept as the file %s (%s).", orNone(devices.Plain(where)), size.Width, size.Height, file.Name, file.ID)
	return tools.Result{Text: text, Files: []claybot.FileReference{file}, Untrusted: true}, nil
}

func describe(s devices.Screen, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "title: %s\naddress: %s\n", orNone(s.Title), orNone(s.URL))
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "note: %s\n", f)
	}
	if text = strings.TrimSpace(text); text == "" {
		text = "(no text)"
	}
	fmt.Fprintf(&b, "\n%s\n", text)
	if len(s.Actions) == 0 {
		b.WriteString("\nThere is nothing to click or to fill in.")
		return b.String()
	}
	b.WriteString("\nWhat can be done, by number:\n")
	for i, a := range s.Actions {
		fmt.Fprintf(&b, "%d. %s\n", i+1, inWords(a))
	}
	if len(s.Actions) == devices.MaxActions {
		b.WriteString("[there may be more; these are the first]\n")
	}
	return b.String()
}

func inWords(a devices.Action) string {
	switch {
	case a.Kind == devices.Type && a.Input != "":
		return fmt.Sprintf("field %s (%s)", a.Label, devices.Line(a.Input, 20))
	case a.Kind == devices.Type:
		return "field " + a.Label
	case a.Kind == devices.Select:
		return fmt.Sprintf("choice %s: %s", a.Label, strings.Join(a.Options, " | "))
	case a.Target != "":
		return fmt.Sprintf("link %s -> %s", a.Label, a.Target)
	case a.Once:
		return "button " + a.Label
	}
	return "click " + a.Label
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func crashed(err error) bool {
	e, ok := errors.AsType[*devices.Error](err)
	return ok && e.Crash
}
