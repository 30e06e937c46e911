package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var (
	_ connectors.Connector  = (*Workspaces)(nil)
	_ connectors.Sender     = (*Workspaces)(nil)
	_ connectors.FileSender = (*Workspaces)(nil)
	_ connectors.Snippeter  = (*Workspaces)(nil)
	_ connectors.Finder     = (*Workspaces)(nil)
	_ connectors.Resender   = (*Workspaces)(nil)
	_ connectors.Streamer   = (*Workspaces)(nil)
	_ connectors.Whisperer  = (*Workspaces)(nil)
	_ connectors.Hooked     = (*Workspaces)(nil)
	_ connectors.Addressed  = (*Workspaces)(nil)
	_ connectors.Verifier   = (*Workspaces)(nil)
	_ connectors.Pooled     = (*Workspaces)(nil)
	_ connectors.Historian  = (*Workspaces)(nil)
	_ connectors.Fetcher    = (*Workspaces)(nil)
	_ connectors.Reactor    = (*Workspaces)(nil)
	_ connectors.Marker     = (*Workspaces)(nil)
	_ connectors.Linker     = (*Workspaces)(nil)
	_ connectors.Statuser   = (*Workspaces)(nil)
	_ connectors.Commander  = (*Workspaces)(nil)
)

// of returns the workspace of a channel, TEAM/CHANNEL. The error is a PermanentError for one without the app.
func (w *Workspaces) of(channel string) (*workspace, error) {
	team, _, _ := strings.Cut(channel, "/")
	x, err := w.find(team)
	if err == nil && x == nil {
		err = &connectors.PermanentError{
			Err: fmt.Errorf("the workspace %.40q does not have the app", team), Fix: "to install it, open the link that this prints: " + w.oauth.Again,
		}
	}
	return x, err
}

// refusedBy is an error of of for what a user or a model asks for.
func refusedBy(err error) error {
	if permanent(err) {
		return &connectors.RefusedError{Text: "the app is not installed in that workspace", Err: err}
	}
	return err
}

// teams returns the ids of workspaces that a frame may be for, the best first. A modal that was opened in a
// channel that workspaces share names the one of the app; so do events there.
//
// Shapes: docs.slack.dev/apis/events-api (authorizations lists at most one),
// docs.slack.dev/reference/interaction-payloads and docs.slack.dev/interactivity/implementing-slash-commands, read
// 2026-11-30.
func (f frame) teams() (all []string) {
	var p struct {
		Team    string `json:"team_id"`
		Context string `json:"context_team_id"`
		For     []struct {
			Team string `json:"team_id"`
		} `json:"authorizations"`
		Place struct {
			ID string `json:"id"`
		} `json:"team"`
		User struct {
			Team string `json:"team_id"`
		} `json:"user"`
		View struct {
			App string `json:"app_installed_team_id"`
		} `json:"view"`
	}
	if connectors.Decode(f.Payload, &p) != nil {
		return nil
	}
	all = append(all, p.View.App, p.Place.ID)
	for _, x := range p.For {
		all = append(all, x.Team)
	}
	return append(all, p.Context, p.Team, p.User.Team)
}

// mentions returns the text of a message, or of a change of one, in a channel that workspaces share; empty for
// any other frame.
//
// Shape: docs.slack.dev/apis/events-api, read 2026-11-30: is_ext_shared_channel, and of several installations that
// see an event, Slack names any.
func (f frame) mentions() string {
	type said struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var p struct {
		Shared bool `json:"is_ext_shared_channel"`
		Event  struct {
			said
			Message  said `json:"message"`
			Previous said `json:"previous_message"`
		} `json:"event"`
	}
	if f.Type != "events_api" || connectors.Decode(f.Payload, &p) != nil || !p.Shared || p.Event.Type != "message" && p.Event.Type != "app_mention" {
		return ""
	}
	return p.Event.Text + p.Event.Message.Text + p.Event.Previous.Text
}

// meant returns the teams that a frame may be for, the best first: where several workspaces with the app share a
// channel, a message is for the one whose bot it mentions, whichever of them Slack names.
func (w *Workspaces) meant(f frame) []string {
	teams, text := f.teams(), f.mentions()
	if text == "" {
		return teams
	}
	all, _ := w.sorted()
	all = slices.DeleteFunc(all, func(x *workspace) bool {
		self := x.self.Load()
		if self == nil {
			return true
		}
		_, mentioned := strip(text, *self)
		return !mentioned
	})
	first := slices.IndexFunc(teams, func(team string) bool {
		return slices.ContainsFunc(all, func(x *workspace) bool { return x.Team == team })
	})
	switch {
	case len(all) == 0:
		return teams
	case first < 0:
		return append([]string{all[0].Team}, teams...)
	}
	return append([]string{teams[first]}, teams...) // of several, Slack's choice
}

// precedes reports whether a frame says that an earlier installation than i has ended. Slack sends it again, or
// late, when the workspace may have installed the app again already. The clocks may differ by a little: a workspace
// whose token Slack refuses is reported in any case.
func (f frame) precedes(i install) bool {
	var e event
	if f.Type != "events_api" || connectors.Decode(f.Payload, &e) != nil || e.Event.Type != "app_uninstalled" && e.Event.Type != "tokens_revoked" {
		return false
	}
	return e.Time > 0 && !time.Unix(e.Time+1, 0).After(i.At)
}

// uninstalls reports whether a frame says that the app was removed from a workspace.
func (f frame) uninstalls(team string) bool {
	var e event
	return f.Type == "events_api" && connectors.Decode(f.Payload, &e) == nil && e.Event.Type == "app_uninstalled" && e.Team == team
}

// ServeHTTP passes a request of Slack to its workspace. What is of no workspace with the app is acknowledged,
// and has no effect.
func (w *Workspaces) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.front.admit(rw, r, func(f frame) {
		for _, team := range w.meant(f) {
			if team == "" {
				continue
			}
			x, err := w.find(team)
			if err != nil { // Slack sends it again
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			switch {
			case x == nil:
				continue
			case f.precedes(x.install): // the present one stays
			case !f.uninstalls(x.Team):
				x.pass(rw, r, f)
			case w.leave(r.Context(), x) != nil: // also while it is refused, and takes nothing
				rw.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		w.front.ignored.Add(1)
	})
}

// Name is the configured name.
func (w *Workspaces) Name() string { return w.cfg.Name }

// Address implements connectors.Addressed.
func (w *Workspaces) Address() string { return w.cfg.Hook }

// Limit implements connectors.Hooked.
func (w *Workspaces) Limit() int64 { return w.front.Limit() }

// Wake implements connectors.Pooled.
func (w *Workspaces) Wake() { w.pooled(true) }

// CloseIdleConnections implements connectors.Pooled.
func (w *Workspaces) CloseIdleConnections() { w.pooled(false) }

func (w *Workspaces) pooled(awake bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awake = awake
	for _, x := range w.teams {
		if awake {
			x.Wake()
		} else {
			x.CloseIdleConnections()
		}
	}
	if awake {
		w.front.Wake()
	} else {
		w.front.CloseIdleConnections()
	}
}

// Verify implements connectors.Verifier: only what the operator sets can be wrong, and Slack has no question
// for that.
func (w *Workspaces) Verify(context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	return errors.New("slack: workspaces install this app themselves, so it was not asked; claybot status shows whether it works")
}

// Split implements connectors.Sender.
func (w *Workspaces) Split(text string) []string { return w.front.Split(text) }

// Send implements connectors.Sender.
func (w *Workspaces) Send(ctx context.Context, o claybot.Outgoing) (string, error) {
	x, err := w.of(o.Route.ChannelID)
	if err != nil {
		return "", err
	}
	return x.Send(ctx, o)
}

// SendFile implements connectors.FileSender.
func (w *Workspaces) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (string, error) {
	x, err := w.of(o.Route.ChannelID)
	if err != nil {
		return "", err
	}
	return x.SendFile(ctx, o, open)
}

// TakesSnippets implements connectors.Snippeter: one workspace at least shows code so. Where Slack refuses the file
// for lack of a scope, the code is sent as text.
func (w *Workspaces) TakesSnippets() bool {
	all, _ := w.sorted()
	return slices.ContainsFunc(all, func(x *workspace) bool { return x.TakesSnippets() })
}

// Find implements connectors.Finder.
func (w *Workspaces) Find(ctx context.Context, o claybot.Outgoing) (receipt string, found bool, err error) {
	x, err := w.of(o.Route.ChannelID)
	if err != nil {
		return "", false, err
	}
	return x.Find(ctx, o)
}

// Resend implements connectors.Resender.
func (w *Workspaces) Resend(o claybot.Outgoing) bool { return w.front.Resend(o) }

// Streaming implements connectors.Streamer.
func (w *Workspaces) Streaming(r claybot.Route) connectors.Streaming { return w.front.Streaming(r) }

// Whispers implements connectors.Whisperer.
func (w *Workspaces) Whispers(o claybot.Outgoing) bool { return w.front.Whispers(o) }

// Command implements connectors.Commander.
func (w *Workspaces) Command(r claybot.Route, name string) string { return w.front.Command(r, name) }

// Said implements connectors.Historian.
func (w *Workspaces) Said(ctx context.Context, s connectors.Span) (all []claybot.Said, more bool, err error) {
	x, err := w.of(s.Channel)
	if err != nil {
		return nil, false, refusedBy(err)
	}
	return x.Said(ctx, s)
}

// Fetch implements connectors.Fetcher. A file without a workspace is of the first one.
func (w *Workspaces) Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	team, _, qualified := strings.Cut(f.Source, "/")
	if !qualified {
		all, err := w.ledger.read()
		if err != nil {
			return nil, err
		}
		team = all.Home
	}
	x, err := w.of(team)
	if err != nil {
		return nil, refusedBy(err)
	}
	return x.Fetch(ctx, f)
}

// React implements connectors.Reactor.
func (w *Workspaces) React(ctx context.Context, r claybot.Route, message, emoji string) error {
	x, err := w.of(r.ChannelID)
	if err != nil {
		return refusedBy(err)
	}
	return x.React(ctx, r, message, emoji)
}

// Mark implements connectors.Marker.
func (w *Workspaces) Mark(ctx context.Context, r claybot.Route, m claybot.Mark) error {
	x, err := w.of(r.ChannelID)
	if err != nil {
		return refusedBy(err)
	}
	return x.Mark(ctx, r, m)
}

// Status implements connectors.Statuser.
func (w *Workspaces) Status(ctx context.Context, r claybot.Route, message, text string) (time.Duration, error) {
	x, err := w.of(r.ChannelID)
	if err != nil {
		return 0, err
	}
	return x.Status(ctx, r, message, text)
}

// Refs implements connectors.Linker. A link does not name its workspace by its id, so it may be of each.
func (w *Workspaces) Refs(link string) (refs []string) {
	all, _ := w.sorted()
	for _, x := range all {
		refs = append(refs, x.Refs(link)...)
	}
	return refs
}

// Ignored counts requests that were acknowledged but not processed, those of workspaces without the app
// among them.
func (w *Workspaces) Ignored() int64 {
	n := w.front.Ignored()
	all, _ := w.sorted()
	for _, x := range all {
		n += x.Ignored()
	}
	return n
}
