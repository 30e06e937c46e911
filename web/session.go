package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/claybot/claybot/storage"
)

const (
	sessionLife = 12 * time.Hour
	// renewAfter is the age at which opening the page replaces a session; the old one then
	// remains valid for overlap.
	renewAfter  = time.Hour
	overlap     = time.Minute
	maxSessions = 64
	// saveEvery is the interval of retries to write sessions.
	saveEvery = 10 * time.Second
)

// errReturns: the sessions ended, but the file still has them.
var errReturns = errors.New("a restart restores the ended sessions")

type session struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Login is shared by a session and its replacements: logging out ends all of them.
	Login string `json:"login"`
	// Here says that the login came from a browser of this machine, see Here.
	Here bool `json:"here,omitempty"`
}

func (s session) same(other session) bool {
	return s.Login == other.Login && s.Since.Equal(other.Since) && s.Until.Equal(other.Until)
}

func sessionKey(login string) string { return "session:" + login }

// begin adds a session and returns its cookie. The caller holds mu.
func (a *auth) begin(login string, here bool) string {
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
	a.sessions[digest(cookie)] = session{Since: now, Until: now.Add(sessionLife), Login: login, Here: here}
	return cookie
}

// find returns the session of a cookie. The caller holds mu.
func (a *auth) find(cookie string) (k hash, s session, ok bool) {
	sum, now := digest(cookie), time.Now()
	for each, x := range a.sessions {
		if each.is(sum) && now.Before(x.Until) {
			k, s, ok = each, x, true
		}
	}
	return k, s, ok
}

// session reports whether the cookie has a valid session.
func (a *auth) session(cookie string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _, ok := a.find(cookie)
	return ok
}

// bySession admits the cookie of a session. It calls end if the session ends before the
// pass is released.
func (a *auth) bySession(cookie string, end context.CancelCauseFunc) (pass, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, s, ok := a.find(cookie)
	if !ok {
		return pass{}, false
	}
	return a.under.enter(&a.mu, pass{Caller: Caller{Name: owner, Scope: Admin, Here: s.Here}, until: s.Until}, sessionKey(s.Login), end), true
}

// renew replaces an old session and returns the new cookie, or "" for a young session.
// Active requests may use the old one for another minute. As at a login, the file may be
// written later.
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
	expire(a.codes, a.sessions)
	fresh := a.begin(s.Login, s.Here)
	a.mu.Unlock()
	a.note()
	return fresh
}

// logout ends the login of a cookie and its requests immediately. After errReturns they
// are ended only until a restart.
func (a *auth) logout(cookie string) error {
	a.mu.Lock()
	if _, s, ok := a.find(cookie); ok {
		a.endLogin(s.Login)
	}
	a.mu.Unlock()
	return a.forget(written)
}

// logoutAll ends every session. It may return errReturns.
func (a *auth) logoutAll() error {
	a.mu.Lock()
	for _, s := range a.sessions {
		a.under.end(sessionKey(s.Login))
	}
	clear(a.sessions)
	a.mu.Unlock()
	return a.forget(cleared)
}

// endLogin ends the sessions of a login. The caller holds mu.
func (a *auth) endLogin(login string) {
	maps.DeleteFunc(a.sessions, func(_ hash, s session) bool { return s.Login == login })
	a.under.end(sessionKey(login))
}

// note writes a new session. If that fails, the session is valid until the next start.
func (a *auth) note() {
	if err := a.save(written); err != nil {
		a.log.Error("failed to write a session; it ends with a restart unless there is space before", "err", err)
	}
}

// forget records that sessions have ended; with cleared, also those unknown to this member.
// On a full disk it removes the file, and users must log in again after a restart. It
// returns errReturns if the file remains.
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
	if saved { // by a concurrent request
		return nil
	}
	if !errors.Is(err, storage.ErrFull) || a.tree.Remove(ctx, treeSessions, 0) != nil {
		return fmt.Errorf("%w: %w", errReturns, err)
	}
	a.view.sessions.version, a.view.sessions.base = 0, nil
	a.log.Error("failed to write sessions; they end with a restart unless there is space before", "err", err)
	return nil
}

// save writes the sessions, at each login and logout.
func (a *auth) save(how way) error {
	ctx, done := a.change()
	defer done()
	_, err := a.view.sessions.sync(ctx, how)
	a.mu.Lock()
	a.unsaved = err != nil
	a.mu.Unlock()
	return err
}

// loadSessions validates the sessions read from a data directory; without them, users log in
// again.
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

// keep retries to write sessions until ctx is done.
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
			a.log.Info("writing sessions recovered")
		}
	}
}
