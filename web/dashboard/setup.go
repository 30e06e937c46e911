package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// setupPages serves the guide that sets claybot up, and the banner of the chats that leads to it.
type setupPages struct {
	*pages
	setup  web.Setup // nil: there is none
	agents web.Agents
	runs   web.Runs
}

func (b *setupPages) routes() []web.Route {
	return []web.Route{
		b.admin(b.screen("/ui/setup", "setup", b.page)),
		b.admin(b.part("/ui/setup/steps", "setup", "setup-steps", b.page)),
		b.admin(b.part("/ui/setup/now", "setup", "setup-now", b.now)),
		b.admin(b.part("/ui/setup/banner", "chats", "guide", b.banner)),
		b.form("POST /ui/setup/models", web.Admin, b.models),
		b.form("POST /ui/setup/answer", web.Admin, b.answer),
	}
}

// setupTime bounds what an answer takes: a model that must be loaded takes long.
const setupTime = 2 * time.Minute

// A setupMark is a step in the list of all.
type setupMark struct {
	Name, Title string
	Set, Here   bool
}

// URL is the page of the step.
func (m setupMark) URL() string {
	if m.Name == setupReply {
		return "/"
	}
	return "/ui/setup?" + url.Values{"step": {m.Name}}.Encode()
}

// setupReply is the last step, which the chat does: a first reply.
const setupReply = "reply"

// A setupView is the page of a step.
type setupView struct {
	viewer
	Step      string
	Steps     []setupMark
	Next      setupMark
	Elsewhere *web.Problem // why the caller cannot set claybot up; nil if they can
}

func (setupView) Title() string { return setupTitle }

// Self is the address of the part that the step shows, and Fresh that of the list.
func (v setupView) Self() string { return "/ui/setup/now?" + url.Values{"step": {v.Step}}.Encode() }

// Fresh is described at Self.
func (v setupView) Fresh() string { return "/ui/setup/steps?" + url.Values{"step": {v.Step}}.Encode() }

// page shows the step of ?step=, or the first that is open.
func (b *setupPages) page(r *http.Request) (any, error) {
	if b.setup == nil {
		return nil, errPage
	}
	state := b.setup.Begun(r.Context())
	replied, err := b.replied(r, state)
	if err != nil {
		return nil, err
	}
	v := setupView{viewer: viewerOf(r), Step: r.URL.Query().Get("step")}
	if !web.Here(r.Context()) {
		v.Elsewhere = web.Explain(web.ErrSetupElsewhere)
	}
	if v.Step == "" {
		v.Step = web.SetupSteps[0]
		if i := slices.IndexFunc(web.SetupSteps, func(name string) bool { return !state.Set[name] }); i > 0 {
			v.Step = web.SetupSteps[i]
		}
	}
	at := slices.Index(web.SetupSteps, v.Step)
	if at < 0 {
		return nil, errPage
	}
	for _, name := range web.SetupSteps {
		v.Steps = append(v.Steps, setupMark{name, setupTitles[name], state.Set[name], name == v.Step})
	}
	v.Steps = append(v.Steps, setupMark{setupReply, setupTitles[setupReply], len(replied) > 0, false})
	v.Next = v.Steps[at+1]
	return v, nil
}

// A setupNow is how far a step is.
type setupNow struct {
	viewer
	web.SetupStep
	People []setupPerson
	Tokens []setupToken // of Slack
}

// A setupModels is the models of a provider.
type setupModels struct {
	viewer
	web.SetupModels
}

// Outside returns an address of one of the platforms; empty for any other, to which no link leads.
func (setupNow) Outside(address string) string {
	if slices.ContainsFunc(setupPlaces, func(p string) bool { return strings.HasPrefix(address, p) }) {
		return address
	}
	return ""
}

// BotFather is where Telegram makes bots, Applications where Discord does, and AddressExample is an
// address of the API of a provider.
func (setupNow) BotFather() string { return setupBotFather }

// Applications is described at BotFather.
func (setupNow) Applications() string { return setupApplications }

// AddressExample is described at BotFather.
func (setupNow) AddressExample() string { return setupAddress }

// A setupPerson has access, and may be the owner.
type setupPerson struct{ ID, Name string }

// A setupToken is a token of Slack that the step needs.
type setupToken struct {
	Words string
	There bool
}

// Waits reports whether a link or a code is being made.
func (v setupNow) Waits() bool {
	p := v.Pairing
	return p != nil && p.Invitation == nil && p.Wrong == "" && len(p.Operators) == 0 && len(p.People) == 0
}

// Settled reports whether nothing is left to answer, so that the forms stand aside.
func (v setupNow) Settled() bool {
	half := v.Name == web.SetupSlack && len(v.Has) == 1
	return v.Set && v.Wrong == "" && !half
}

// now shows how far ?step= is.
func (b *setupPages) now(r *http.Request) (any, error) {
	if b.setup == nil {
		return nil, errPage
	}
	s, err := b.setup.Step(r.Context(), r.URL.Query().Get("step"))
	return viewSetup(viewerOf(r), s), err
}

func viewSetup(who viewer, s web.SetupStep) setupNow {
	v := setupNow{viewer: who, SetupStep: s}
	if s.Pairing != nil {
		for _, g := range s.Pairing.People {
			v.People = append(v.People, setupPerson{g.Subject, connectors.OneLine(g.Name, 60)})
		}
	}
	if s.Name == web.SetupSlack {
		for _, key := range []string{"bot_token", "app_token"} {
			v.Tokens = append(v.Tokens, setupToken{slackTokens[key], slices.Contains(s.Has, key)})
		}
	}
	return v
}

// setupAnswer reads the form of a step.
func setupAnswer(r *http.Request) web.SetupAnswer {
	get := r.PostForm.Get
	return web.SetupAnswer{
		Step: get("step"), By: web.User(r), Version: get("version"), Provider: get("provider"), Address: get("address"), Model: get("model"), Consent: get("consent") != "",
		Secret: strings.TrimSpace(get("secret")), Value: strings.TrimSpace(get("value")), Invite: get("invite") != "", Operator: get("operator"), Again: get("again") != "",
	}
}

// patient gives an answer the time that it may take.
func patient(w http.ResponseWriter, r *http.Request) (*http.Request, context.CancelFunc) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(setupTime + time.Minute)) // else its limit is that of the server
	ctx, cancel := context.WithTimeout(r.Context(), setupTime)
	return r.WithContext(ctx), cancel
}

// models answers with a field of the models of a provider.
func (b *setupPages) models(w http.ResponseWriter, r *http.Request) error {
	if b.setup == nil {
		return errPage
	}
	r, cancel := patient(w, r)
	defer cancel()
	in := setupAnswer(r)
	in.Model = ""
	list, err := b.setup.Models(r.Context(), in)
	if err != nil {
		return setupLate(err)
	}
	html, err := b.render("setup", "setup-models", setupModels{viewerOf(r), list})
	if err == nil {
		write(w, http.StatusOK, html)
	}
	return err
}

// answer answers a step.
func (b *setupPages) answer(w http.ResponseWriter, r *http.Request) error {
	if b.setup == nil {
		return errPage
	}
	r, cancel := patient(w, r)
	defer cancel()
	notes, err := b.setup.Answer(r.Context(), setupAnswer(r))
	if err != nil {
		return setupLate(err)
	}
	words := []string{doneSetup}
	for _, n := range notes {
		if !n.Good {
			words = append(words, n.Text)
		}
	}
	b.done(w, strings.Join(words, " "))
	return nil
}

// setupLate says that an answer took too long.
func setupLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errSetupLate
	}
	return err
}

// A bannerView leads from the chats to the guide.
type bannerView struct {
	viewer
	Demo, Last, Done bool
}

// bannerDays is how long after the model was set the chats ask for the first message.
const bannerDays = 24 * time.Hour

// bannerTime is how long after the first reply the chats say that claybot is set up.
const bannerTime = 10 * time.Minute

// banner shows that claybot is to be set up, and that the first reply has come.
func (b *setupPages) banner(r *http.Request) (any, error) {
	v := bannerView{viewer: viewerOf(r)}
	if b.setup == nil {
		return v, nil
	}
	state := b.setup.Begun(r.Context())
	if v.Demo = state.Demo; v.Demo || state.Since.IsZero() || time.Since(state.Since) > bannerDays {
		return v, nil
	}
	replied, err := b.replied(r, state)
	v.Last = err == nil && len(replied) == 0
	v.Done = len(replied) == 1 && time.Since(replied[0].Ended.Time()) < bannerTime
	return v, err
}

// replied returns the newest runs, two at most, in which the model that is set replied to the caller in
// the chat of the page.
func (b *setupPages) replied(r *http.Request, state web.SetupState) (all []claybot.Run, err error) {
	if state.Demo {
		return nil, nil
	}
	talks, err := b.agents.Conversations(r.Context(), chatConnector, web.User(r))
	slices.SortFunc(talks, func(x, y storage.IndexEntry) int { return cmp.Compare(y.LastUserAt, x.LastUserAt) })
	talks, _ = cut(talks, 5)
	for _, e := range talks {
		if err != nil {
			return nil, err
		}
		var runs []claybot.Run
		runs, err = b.runs.RunPage(r.Context(), storage.RunQuery{Agent: e.ID, State: claybot.RunSucceeded, Limit: 2})
		for _, run := range runs {
			if run.Started.Time().After(state.Since) {
				all = append(all, run)
			}
		}
	}
	return all, err
}

// admin makes a route one for administrators.
func (b *setupPages) admin(r web.Route) web.Route {
	r.Scope = web.Admin
	return r
}
