package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/claybot/claybot/storage"
)

const (
	sessionLife = 12 * time.Hour
	// renewAfter is how old a session may be when the page is opened before it
	// is replaced; the old one then works for overlap more.
	renewAfter  = time.Hour
	overlap     = time.Minute
	maxSessions = 64
	// saveEvery is how often sessions are written again that could not be.
	saveEvery = 10 * time.Second
)

// errReturns: what was ended is at an end, but the file still has it.
var errReturns = errors.New("a restart brings back what was ended")

// A session is one browser that logged in, for the time of one cookie.
type session struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Login is the same for a session and those that replace it: logging out
	// ends all of them.
	Login string `json:"login"`
}

func (s session) same(other session) bool {
	return s.Login == other.Login && s.Since.Equal(other.Since) && s.Until.Equal(other.Until)
}

func sessionKey(login string) string { return "session:" + login }

// begin adds a session and returns its cookie; mu is held.
func (a *auth) begin(login string) string {
	for len(a.sessions) >= maxSessions {
		var oldest hash
		for k, s := range a.sessions {
			if at, ok := a.sessions[oldest]; !ok || s.Since.Before(at.Since) {
				oldest = k
			}
		}
		a.endLogin(a.sessions[oldest].Login)
	}
	cookie, now := random(), time.Now()
	a.sessions[digest(cookie)] = session{Since: now, Until: now.Add(sessionLife), Login: login}
	return cookie
}

// find is the session of a cookie that goes on; mu is held.
func (a *auth) find(cookie string) (k hash, s session, ok bool) {
	sum, now := digest(cookie), time.Now()
	for each, x := range a.sessions {
		if each.is(sum) && now.Before(x.Until) {
			k, s, ok = each, x, true
		}
	}
	return k, s, ok
}

// session reports whether the cookie is of a session that goes on.
func (a *auth) session(cookie string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _, ok := a.find(cookie)
	return ok
}

// bySession lets in whoever has the cookie of a session. end is called when the
// session ends before the pass is left.
func (a *auth) bySession(cookie string, end context.CancelCauseFunc) (pass, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, s, ok := a.find(cookie)
	if !ok {
		return pass{}, false
	}
	return a.enter(pass{Caller: Caller{owner, Admin}, until: s.Until}, sessionKey(s.Login), end), true
}

// renew replaces an old session by a new one and returns the new cookie, or
// nothing when the session is young. Requests under way may use the old one
// for a minute more.
// As for a login, the file may come later.
func (a *auth) renew(cookie string) string {
	a.mu.Lock()
	k, s, ok := a.find(cookie)
	now := time.Now()
	if !ok || now.Sub(s.Since) < renewAfter || s.Until.Sub(now) <= overlap {
		a.mu.Unlock()
		return ""
	}
	s.Until = now.Add(overlap)
	a.sessions[k] = s
	a.expire()
	fresh := a.begin(s.Login)
	a.mu.Unlock()
	a.note()
	return fresh
}

// logout ends the login that a cookie is of, and what is done with it, at once;
// with errReturns, until a restart.
func (a *auth) logout(cookie string) error {
	a.mu.Lock()
	if _, s, ok := a.find(cookie); ok {
		a.endLogin(s.Login)
	}
	a.mu.Unlock()
	return a.forget(written)
}

// logoutAll ends every session; errReturns.
func (a *auth) logoutAll() error {
	a.mu.Lock()
	a.endSessions()
	a.mu.Unlock()
	return a.forget(cleared)
}

// endLogin ends the sessions of a login; mu is held.
func (a *auth) endLogin(login string) {
	for k, s := range a.sessions {
		if s.Login == login {
			delete(a.sessions, k)
		}
	}
	a.under.end(sessionKey(login))
}

// endSessions ends all; mu is held.
func (a *auth) endSessions() {
	for _, s := range a.sessions {
		a.under.end(sessionKey(s.Login))
	}
	clear(a.sessions)
}

// note writes down that there is a new session. Without that, it is good until
// the next start.
func (a *auth) note() {
	if err := a.save(written); err != nil {
		a.log.Error("a login is not written down; it ends with a restart unless there is space before", "err", err)
	}
}

// forget writes down that sessions have ended: with cleared, also those that are
// not known here. When there is no space for that, it removes the file, which takes
// none: people log in again then after a restart. The error is errReturns when the
// file stays.
func (a *auth) forget(how way) error {
	err := a.save(how)
	if err == nil {
		return nil
	}
	ctx, done := a.change()
	defer done()
	a.mu.Lock()
	saved := !a.unsaved
	a.mu.Unlock()
	if saved { // by another request meanwhile
		return nil
	}
	if !errors.Is(err, storage.ErrFull) || a.tree.Remove(ctx, treeSessions, 0) != nil {
		return fmt.Errorf("%w: %w", errReturns, err)
	}
	a.view.sessions.version, a.view.sessions.base = 0, nil
	a.log.Error("logins are not written down; they end with a restart unless there is space before", "err", err)
	return nil
}

// save writes the sessions as they are now. The file is small and written when
// somebody logs in or out.
func (a *auth) save(how way) error {
	ctx, done := a.change()
	defer done()
	err := a.syncSessions(ctx, how)
	a.mu.Lock()
	a.unsaved = err != nil
	a.mu.Unlock()
	return err
}

// loadSessions reads the sessions of a data directory as they were read from their
// file; without them, people log in again.
func loadSessions(b []byte, err error) ([]byte, error) {
	var all map[hash]session
	if err != nil || json.Unmarshal(b, &all) != nil {
		return nil, fs.ErrNotExist
	}
	for k, s := range all {
		if s.Login == "" { // of a version that had none
			s.Login = random()
			all[k] = s
		}
	}
	return json.Marshal(all)
}

// keep writes sessions that could not be written, until ctx is done.
func (a *auth) keep(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		a.mu.Lock()
		unsaved := a.unsaved
		a.mu.Unlock()
		if unsaved && a.save(written) == nil {
			a.log.Info("logins are written down again")
		}
	}
}
