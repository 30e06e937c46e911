package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// lookEvery is how often a member looks for workspaces that others have added, and stoppedAgain how often it
// tries a workspace whose token Slack refuses.
const (
	lookEvery    = 15 * time.Second
	stoppedAgain = 10 * time.Minute
)

// Workspaces is one Slack app in any number of workspaces, each of which installs it by OAuth. Slack sends the
// requests of all to one address.
//
// Each workspace has a Connector of its own, with its token, its limits and its state: what happens to one of
// them changes nothing for the others. The first workspace has the ids that a Connector alone would have; in
// the others, users are TEAM/USER, so that the same id of two workspaces is two people.
//
// Its methods may be called concurrently; Run runs once at a time.
type Workspaces struct {
	cfg    Config
	oauth  OAuth
	log    *slog.Logger
	front  *Connector // of no workspace: it takes requests and asks for tokens
	ledger *ledger
	via    http.RoundTripper // of each workspace; nil: a transport of its own
	pulse  connectors.Pulse

	reading sync.Mutex // is held by refresh
	mu      sync.Mutex
	awake   bool
	teams   map[string]*workspace
	gone    map[string]install
	running *running // nil: Run does not work
}

// A workspace is one that has installed the app.
type workspace struct {
	install
	*Connector
	end  context.CancelFunc // of its Run; nil if it never ran
	done chan struct{}      // is closed when its Run has ended
}

// running is the present Run.
type running struct {
	ctx     context.Context
	handler connectors.Handler
	group   sync.WaitGroup
}

// NewWorkspaces returns a connector for all workspaces that install an app. It reads what is stored of them
// when it is used. Of c, it uses no token and no Rotation; c.Hook is needed.
func NewWorkspaces(c Config, o OAuth) *Workspaces {
	c.BotToken, c.Rotation, c.Installed = "", nil, nil
	front := New(c)
	return &Workspaces{
		cfg: front.cfg, oauth: o, log: front.log, front: front, via: c.HTTP, teams: make(map[string]*workspace), gone: make(map[string]install),
		ledger: &ledger{Secrets: o.Secrets, name: front.cfg.Name, turns: make(map[string]chan struct{})},
	}
}

// check reports what the operator has to set.
func (w *Workspaces) check() error {
	for _, t := range []credential{
		{w.oauth.ClientIDName, w.oauth.ClientID, "", "Basic Information, Client ID"},
		{w.oauth.ClientSecretName, w.oauth.ClientSecret, "", "Basic Information, Client Secret"},
		{w.cfg.SigningSecretName, w.cfg.SigningSecret, "", "Basic Information, Signing Secret"},
	} {
		if t.value == "" {
			return &connectors.PermanentError{
				Says: texts.StoppedNoToken,
				Err:  fmt.Errorf("%s is missing", t.field),
				Fix:  fmt.Sprintf("copy it from api.slack.com/apps, %s, and %s", t.page, again(t.field, "")),
			}
		}
	}
	return nil
}

// Run takes requests for all workspaces until ctx is done.
func (w *Workspaces) Run(ctx context.Context, h connectors.Handler) error {
	return w.cfg.Gate.Run(ctx, func(ctx context.Context) error {
		return w.pulse.Ended(ctx, fmt.Errorf("%s: %w", w.Name(), w.run(ctx, h)))
	})
}

func (w *Workspaces) run(ctx context.Context, h connectors.Handler) error {
	if err := w.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	now := &running{ctx: ctx, handler: h}
	w.mu.Lock()
	w.running = now
	for _, x := range w.teams {
		w.start(x, nil)
	}
	w.mu.Unlock()
	defer func() {
		cancel()
		w.mu.Lock()
		w.running = nil // nothing joins the group any more
		w.mu.Unlock()
		now.group.Wait()
	}()
	if w.cfg.AppToken != "" {
		now.group.Go(func() { w.front.watchSockets(ctx) })
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := w.refresh(); err == nil {
			w.pulse.OK()
		} else {
			w.log.Warn("the workspaces of the slack app cannot be read", "err", err)
			w.pulse.Fail(err.Error() + "; trying again")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}

// refresh follows what is stored: it starts the workspaces that are new or were installed again, and ends
// those that are gone.
func (w *Workspaces) refresh() error {
	w.reading.Lock()
	defer w.reading.Unlock()
	all, err := w.ledger.read()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range all.All {
		old := w.teams[i.Team]
		switch {
		case !i.Gone.IsZero():
			w.part(i, old)
			continue
		case old != nil && old.At.Equal(i.At):
			continue
		}
		tokens, err := w.ledger.tokens(i.Team)
		if err != nil {
			return err
		}
		x := w.join(i, all.Home, tokens)
		w.drop(old)
		delete(w.gone, i.Team)
		if w.teams[i.Team] = x; w.awake {
			x.Wake()
		}
		w.start(x, old)
	}
	return nil
}

// join returns the connector of a workspace.
func (w *Workspaces) join(i install, home string, tokens *pair) *workspace {
	cfg := w.cfg
	cfg.HTTP, cfg.AppToken, cfg.Log = w.via, "", w.cfg.Log.With("workspace", i.Team)
	cfg.Gate = connectors.Gate{Why: w.cfg.Gate.Why} // Run of all is what a change of it ends
	cfg.BotTokenName = "the token of the workspace " + i.String()
	cfg.Installed = &Installed{Team: i.Team, Home: home, ClientSecret: w.oauth.ClientSecret, Again: w.oauth.Again}
	if tokens.Refresh == "" {
		cfg.BotToken = cmp.Or(tokens.Access, "none") // what is lost, Slack refuses
	} else {
		cfg.Rotation = &Rotation{
			ClientID: w.oauth.ClientID, ClientSecret: w.oauth.ClientSecret, ClientIDName: w.oauth.ClientIDName, ClientSecretName: w.oauth.ClientSecretName,
			Secrets: w.ledger, Stored: w.ledger.secretOf(i.Team),
		}
	}
	return &workspace{install: i, Connector: New(cfg), done: make(chan struct{})}
}

// drop ends a workspace, which may be nil, because it is gone or another one replaces it. The lock is held.
func (w *Workspaces) drop(x *workspace) {
	if x == nil {
		return
	}
	delete(w.teams, x.Team)
	if x.end != nil {
		x.end()
	}
	x.CloseIdleConnections()
}

// start runs a workspace once the one that it replaces has ended; that may be nil. The lock is held.
func (w *Workspaces) start(x, after *workspace) {
	now := w.running
	if now == nil {
		return
	}
	ctx, cancel := context.WithCancel(now.ctx)
	x.end, x.done = cancel, make(chan struct{})
	done := x.done
	now.group.Go(func() {
		defer close(done)
		defer cancel()
		if after != nil && after.end != nil {
			<-after.done
		}
		w.keep(ctx, x, now.handler)
	})
}

// keep runs one workspace until ctx is done or the app is removed from it.
func (w *Workspaces) keep(ctx context.Context, x *workspace, h connectors.Handler) {
	var pause connectors.Backoff
	for last := ""; ; {
		err := x.Run(ctx, h)
		if ctx.Err() != nil {
			return
		}
		wait := pause.Next(waitFor(err))
		if errors.Is(err, errUninstalled) {
			if err = w.leave(ctx, x); err == nil {
				return
			}
		} else if permanent(err) {
			wait = stoppedAgain
		}
		if text := err.Error(); text != last {
			last = text
			w.log.Warn("a workspace of the slack app failed", "workspace", x.String(), "err", err, "again", wait)
		}
		if !connectors.Sleep(ctx, wait) {
			return
		}
	}
}

// leave ends a workspace from which the app was removed, once that is stored.
func (w *Workspaces) leave(ctx context.Context, x *workspace) error {
	if err := w.ledger.forget(ctx, x.install); err != nil {
		return fmt.Errorf("note that a workspace has removed the app: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.teams[x.Team] == x { // else another request was first
		w.part(x.install, x)
	}
	return nil
}

// part notes that a workspace has removed the app, and ends it if it is not nil. The lock is held.
func (w *Workspaces) part(i install, x *workspace) {
	if w.gone[i.Team] = i; x != nil {
		w.log.Warn("the slack app was removed from a workspace", "workspace", i.String())
		w.drop(x)
	}
}

// find returns the workspace with an id; nil for one that has not installed the app, or has removed it. An error
// means that it is not known.
func (w *Workspaces) find(team string) (*workspace, error) {
	w.mu.Lock()
	x := w.teams[team]
	w.mu.Unlock()
	if x != nil {
		return x, nil
	}
	if err := w.refresh(); err != nil { // another member may have added it
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.teams[team], nil
}

// sorted returns the workspaces that have the app, and those that have removed it, by their ids.
func (w *Workspaces) sorted() (all []*workspace, gone []install) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, team := range slices.Sorted(maps.Keys(w.teams)) {
		all = append(all, w.teams[team])
	}
	for _, team := range slices.Sorted(maps.Keys(w.gone)) {
		if w.teams[team] == nil {
			gone = append(gone, w.gone[team])
		}
	}
	return all, gone
}

// Health is live while one workspace works, and names the others.
func (w *Workspaces) Health() connectors.Health {
	h := w.cfg.Gate.Health(w.pulse.Health())
	if h.State != connectors.StateLive {
		return h
	}
	all, gone := w.sorted()
	var notes []string
	states := make(map[string]int)
	for _, x := range all {
		of := x.Health()
		states[of.State]++
		text := strings.TrimPrefix(of.Err, w.Name()+": ")
		if text != "" {
			notes = append(notes, x.String()+": "+text)
		}
	}
	for _, i := range gone {
		notes = append(notes, fmt.Sprintf("%s has removed the app; to install it again, open the link that this prints: %s", i, w.oauth.Again))
	}
	if len(all) == 0 {
		notes = append(notes, "no workspace has installed the app; open the link that this prints: "+w.oauth.Again)
	}
	if text := w.front.hooked.fault.Load(); text != nil && *text != "" {
		notes = append(notes, *text)
	}
	switch n := len(all); {
	case n == 0 || states[connectors.StateLive] > 0:
	case states[connectors.StateStarting] > 0:
		h = connectors.Health{State: connectors.StateStarting}
	default:
		h.State = connectors.StateFailing
	}
	h.Err = strings.Join(notes, "; ")
	return h
}
