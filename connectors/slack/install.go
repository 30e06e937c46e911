package slack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
)

// installCookie ties an installation to the browser that began it.
const installCookie = "claybot-slack-install"

// installTime is how long an answer of Slack and its storage may take.
const installTime = time.Minute

// What browsers read. It says nothing to those that have no link.
const (
	saysNoLink    = "This link is not valid any more. Ask the person who gave it to you for a new one."
	saysLater     = "claybot cannot do this now. Try again in a minute, with the same link."
	saysAgain     = "This did not work. Open the link again that you were given."
	saysNotSlack  = "Slack did not install the app: %s. Open the link again that you were given."
	saysOneByOne  = "claybot cannot be installed for a whole organization. Remove it there, then open the link again and choose one workspace."
	saysInstalled = "claybot is installed in %s. You can close this page and write to claybot in Slack."
)

// say answers a browser. What is asked for leaves no trace with it.
func say(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the browser may be gone
}

// NoInstall answers a browser where no app can be installed.
func NoInstall(w http.ResponseWriter) { say(w, http.StatusNotFound, saysNoLink) }

// Install leads a browser with an install link to Slack, and changes nothing: a program that looks at links
// uses none up.
func (w *Workspaces) Install(rw http.ResponseWriter, r *http.Request) {
	link, ok := w.oauth.inviteOf(w.Name(), r.URL.Query().Get("code"))
	if !ok || w.check() != nil {
		say(rw, http.StatusNotFound, saysNoLink)
		return
	}
	all, err := w.ledger.read()
	switch {
	case err != nil:
		w.log.Warn("slack app not installed: the workspaces cannot be read", "err", err)
		say(rw, http.StatusServiceUnavailable, saysLater)
		return
	case !link.valid(all, time.Now()):
		say(rw, http.StatusNotFound, saysNoLink)
		return
	}
	cookie := rand.Text()
	http.SetCookie(rw, w.cookie(cookie, int(stateLife/time.Second)))
	rw.Header().Set("Cache-Control", "no-store")
	rw.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(rw, r, w.oauth.authorizeURL(w.cfg.APIURL, App{Without: w.cfg.Without}.scopes(), w.oauth.stateFor(w.Name(), link, cookie, time.Now())), http.StatusFound)
}

// cookie is sent by the browser when Slack leads it back.
func (w *Workspaces) cookie(value string, seconds int) *http.Cookie {
	path := "/"
	u, err := url.Parse(w.oauth.URL)
	if err == nil && u.Path != "" {
		path = u.Path
	}
	return &http.Cookie{
		Name: installCookie, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, Secure: err == nil && u.Scheme == "https", SameSite: http.SameSiteLaxMode,
	}
}

// Installed takes a browser that comes back from Slack. The workspace is stored with the note that the link
// was used, in one step: after a crash before that, the same link works again.
func (w *Workspaces) Installed(rw http.ResponseWriter, r *http.Request) {
	args, cookie := r.URL.Query(), ""
	if c, err := r.Cookie(installCookie); err == nil {
		cookie = c.Value
	}
	link, ok := w.oauth.inviteBy(w.Name(), args.Get("state"), cookie, time.Now())
	if !ok || w.check() != nil {
		say(rw, http.StatusNotFound, saysNoLink)
		return
	}
	if code := word(args.Get("error")); code != "" {
		say(rw, http.StatusBadRequest, fmt.Sprintf(saysNotSlack, code))
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), installTime) // what Slack gives is stored
	defer cancel()
	var made install
	err := w.ledger.edit(ctx, func(all *installs) (err error) {
		if !link.valid(all, time.Now()) {
			return errNoLink
		}
		if made, err = w.exchange(ctx, args.Get("code")); err == nil {
			all.put(made)
			all.spend(link, time.Now())
		}
		return err
	})
	var refused *refusal
	switch {
	case errors.Is(err, errNoLink):
		say(rw, http.StatusNotFound, saysNoLink)
	case errors.As(err, &refused):
		w.log.Warn("slack app not installed", "err", err)
		say(rw, http.StatusBadRequest, refused.says)
	case err != nil:
		w.log.Warn("slack app not installed", "err", err)
		say(rw, http.StatusServiceUnavailable, saysAgain)
	default:
		w.log.Info("slack app installed", "workspace", made.Team, "name", connectors.PersonName(made.Name))
		http.SetCookie(rw, w.cookie("", -1))
		if err := w.refresh(); err != nil {
			w.log.Warn("the workspaces of the slack app cannot be read, trying again", "err", err)
		}
		w.begun(ctx, made.Team)
		say(rw, http.StatusOK, fmt.Sprintf(saysInstalled, made))
	}
}

// begun waits until a workspace takes requests, so that the first message of the person who installed the app
// needs no second attempt of Slack. Where it fails, Health says so.
func (w *Workspaces) begun(ctx context.Context, team string) {
	x, _ := w.find(team)
	for x != nil && x.Health().State == connectors.StateStarting && connectors.Sleep(ctx, firstRetry) {
		continue
	}
}

var errNoLink = errors.New("the link was used or its time is over")

// A refusal is what a person can mend.
type refusal struct {
	error
	says string
}

// exchange gets the tokens of a workspace by the code that its browser brings, and stores them.
func (w *Workspaces) exchange(ctx context.Context, code string) (made install, err error) {
	asked := time.Now()
	g, err := w.front.access(w.oauth.ClientID, w.oauth.ClientSecret, url.Values{"code": {code}, "redirect_uri": {w.oauth.callback()}})
	switch {
	case err != nil:
		return made, err
	case !g.OK:
		return made, &refusal{fmt.Errorf("%s: slack says %s", methodAccess, g.Error), fmt.Sprintf(saysNotSlack, g.Error)}
	case g.Organization:
		return made, &refusal{errors.New(methodAccess + ": the app was installed for a whole organization"), saysOneByOne}
	case g.Access == "" || g.Type != "bot" || g.Team.ID == "" || strings.ContainsRune(g.Team.ID, '/'):
		return made, &refusal{errors.New(methodAccess + ": the answer has no token of a bot in a workspace"), saysAgain}
	}
	if err := w.ledger.keep(ctx, g.Team.ID, g.pair(asked)); err != nil {
		return made, fmt.Errorf("store the tokens of a workspace: %w", err)
	}
	return install{Team: g.Team.ID, Name: connectors.PersonName(g.Team.Name), At: asked.UTC().Truncate(time.Millisecond)}, nil
}
