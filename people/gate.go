package people

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// AccessMode defines how unknown users are treated.
type AccessMode string

// The access modes. The zero value is pairing, which is safe without
// configuration.
const (
	AccessPairing   AccessMode = "pairing"
	AccessAllowlist AccessMode = "allowlist"
	AccessOpen      AccessMode = "open"
)

// Access lists the users and channels that have access besides those that an
// operator approved. Allow holds "connector:id" with the stable id of a user
// (direct chats) or of a channel (groups).
type Access struct {
	Mode  AccessMode
	Allow []string
	// Trusted connectors authenticate users themselves: web page and terminal.
	Trusted []string
}

// Limits of pairing: one code an hour for a user, three open codes for a
// connector besides those of which operators were notified, of which the oldest makes room for another
// user after ten minutes, and a lockout after ten wrong codes in ten minutes.
const (
	pairingValid = time.Hour
	pairingOpen  = 3
	pairingAlone = 10 * time.Minute
	wrongCodes   = 10
	wrongWindow  = 10 * time.Minute
	lockedFor    = 5 * time.Minute
	lockedAtMost = time.Hour
	codeLength   = 8
	codeAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ" // 32 characters: no 0 O 1 I
)

// Errors of Approve.
var (
	// ErrBadCode means that no open request has this code.
	ErrBadCode = fmt.Errorf("%w: no open pairing request has this code", storage.ErrNotFound)
	// ErrCodesLocked means that codes are locked after too many wrong ones.
	ErrCodesLocked = errors.New("too many wrong codes; try again in some minutes")
)

// A Gate decides who has access. It caches the grants of the store.
type Gate struct {
	*Moves
	store  storage.Access
	ranks  storage.Roles
	access func() Access
	asking chan struct{} // held while one unknown user is answered, so that the counts of codes hold

	mu       sync.Mutex
	grants   map[subject]storage.Grant
	roles    map[string]storage.RoleGrant // by "connector/userId"
	changed  map[string]int64             // the number of the last change of a role, by "connector/userId"
	loaded   int64                        // the number of the last change that roles had when they were loaded
	redeemed map[string]storage.Grant     // by an invitation, the newest of each connector
	changes  int                          // of what this process knows of grants and roles
	asked    map[subject]time.Time        // when an unknown user last got a code
	refused  int64                        // messages of unknown users since the start
	wrong    []time.Time                  // wrong codes within the window
	locked   time.Time                    // end of the lockout
	penalty  time.Duration
}

// A subject is a user or a channel of a connector.
type subject struct{ connector, id string }

// NewGate returns a Gate over the grants in a store and the settings, which are read with
// every message. What they say of a chat holds on when it gets a new id.
func NewGate(store storage.Access, roles storage.Roles, access func() Access, moves *Moves) *Gate {
	return &Gate{
		Moves:    moves,
		store:    store,
		ranks:    roles,
		access:   access,
		asking:   make(chan struct{}, 1),
		grants:   make(map[subject]storage.Grant),
		roles:    make(map[string]storage.RoleGrant),
		changed:  make(map[string]int64),
		redeemed: make(map[string]storage.Grant),
		asked:    make(map[subject]time.Time),
	}
}

// Load reads the stored grants and roles, those of other members included, and then the new ids of chats:
// a grant leaves a former id once the new one is stored, so no grant is in force without the move
// that explains it. On an error the grants stay as they were. Changes that this process makes
// meanwhile win.
func (g *Gate) Load(ctx context.Context) error {
	for {
		g.mu.Lock()
		changes := g.changes
		g.mu.Unlock()
		grants, err := g.store.Grants(ctx)
		if err != nil {
			return fmt.Errorf("load grants: %w", err)
		}
		all := make(map[subject]storage.Grant, len(grants))
		for _, x := range grants {
			all[subject{x.Connector, x.Subject}] = x
		}
		roles, number, err := g.ranks.Roles(ctx)
		if err != nil {
			return fmt.Errorf("load roles: %w", err)
		}
		if err := g.Moves.Load(ctx); err != nil {
			return err
		}
		if g.replace(all, roles, number, changes) {
			return nil
		}
	}
}

// replace installs grants and roles that were read, with the number of a change of roles that they
// include, unless some have changed since.
func (g *Gate) replace(all map[subject]storage.Grant, roles []storage.RoleGrant, number int64, changes int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes != changes {
		return false
	}
	for who := range g.grants {
		if _, still := all[who]; !still {
			delete(g.asked, who)
		}
	}
	g.changes++ // what another call has read meanwhile may be older
	g.grants, g.loaded = all, number
	clear(g.changed)
	g.roles = make(map[string]storage.RoleGrant, len(roles))
	for _, r := range roles {
		g.roles[r.Who] = r
	}
	return true
}

// Allowed reports whether messages of d are accepted. A group needs a grant of its own; in
// a direct chat the person needs one. A user of another organization, <team>/<user>, needs
// one in any case.
func (g *Gate) Allowed(d claybot.Descriptor, group bool) bool {
	if strings.ContainsRune(d.UserID, '/') && !g.KnowsOutsider(d.Connector, d.UserID) {
		return false
	}
	if !group {
		return g.Knows(d.Connector, d.UserID)
	}
	return g.ofChannel(d.Connector, d.ChannelID, g.Knows)
}

// Decided reports whether the list or an operator gives a channel access. That access is open is no
// decision about it.
func (g *Gate) Decided(connector, channel string) bool {
	return g.ofChannel(connector, channel, func(connector, id string) bool {
		return g.Listed(connector, id) || g.Granted(connector, id)
	})
}

// ofChannel reports whether is holds for an id that a channel has or had. Slack channels are named
// <team>/<channel>; lists may omit the team. This does not apply to users: <team>/<user> is a user
// of another workspace.
func (g *Gate) ofChannel(connector, channel string, is func(connector, id string) bool) bool {
	channel = g.Current(connector, channel)
	for _, id := range append([]string{channel}, g.Former(connector, channel)...) {
		short := withoutTeam(id)
		if is(connector, id) || short != "" && is(connector, short) {
			return true
		}
	}
	return false
}

// Admits reports whether m is accepted for d. Access of a channel covers its members, not
// outsiders, who need access themselves as well, nor other bots, which need to be listed or
// granted. Each sender to a shared agent is checked
// on their own.
func (g *Gate) Admits(d claybot.Descriptor, m claybot.AgentMessage) bool {
	if d.Shared() {
		d.UserID, m.Context.Group = m.From.UserID, true
	}
	if m.From.Bot && !g.Listed(d.Connector, d.UserID) && !g.Granted(d.Connector, d.UserID) {
		return false
	}
	return g.Allowed(d, m.Context.Group) && (!m.From.Outsider || g.KnowsOutsider(d.Connector, d.UserID))
}

// KnowsOutsider reports whether an outsider has access themselves. Open access is access
// for guests, but not for users of other organizations, <team>/<user>.
func (g *Gate) KnowsOutsider(connector, user string) bool {
	if strings.ContainsRune(user, '/') {
		return g.Listed(connector, user) || g.Granted(connector, user) || slices.Contains(g.access().Trusted, connector)
	}
	return g.Knows(connector, user)
}

// Knows reports whether the mode, the list or an operator gives the user or
// channel access.
func (g *Gate) Knows(connector, id string) bool { return g.knowsBy(g.access(), connector, id) }

// knowsBy is Knows by other settings than those that hold.
func (g *Gate) knowsBy(a Access, connector, id string) bool {
	if a.Mode == AccessOpen {
		return true
	}
	for _, t := range a.Trusted {
		if t == connector {
			return true
		}
	}
	return slices.Contains(a.Allow, connector+":"+id) || g.Granted(connector, id)
}

// Listed reports whether the person or channel is on the configured list.
func (g *Gate) Listed(connector, id string) bool {
	return slices.Contains(g.access().Allow, connector+":"+id)
}

// MoveGrant gives the new id of a chat the grants of a former one, which lose them. To call it
// again after a crash in between completes it. Access by a list, or of all, needs no move.
func (g *Gate) MoveGrant(ctx context.Context, connector, from, to string) error {
	for _, id := range []string{from, withoutTeam(from)} {
		if id == "" || !g.Granted(connector, id) {
			continue
		}
		if err := g.Grant(ctx, storage.Grant{Connector: connector, Subject: to, Name: "was " + id, At: claybot.Now()}); err != nil {
			return err
		}
		if err := g.Revoke(ctx, connector, id); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Granted reports whether an operator approved the person or channel.
func (g *Gate) Granted(connector, id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.grants[subject{connector, id}]
	return ok
}

// notices are what operators read of requests for access.
type notices interface {
	// announcement returns the notices of a new request.
	announcement(ctx context.Context, p storage.Pairing) []claybot.Outgoing
	// noticed reports whether operators were notified of a request, and have not decided it.
	noticed(ctx context.Context, p storage.Pairing) (bool, error)
}

// Challenge answers a message of an unknown user: with at most one code an hour in a
// direct chat in pairing mode, otherwise not at all. Outsiders and other bots get no code. What
// notices.announcement returns of a new request goes into the outbox in the same commit. A request that
// operators have before them stays open for its hour, however many others come.
func (g *Gate) Challenge(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage, notices notices) ([]claybot.Outgoing, error) {
	who := subject{d.Connector, d.UserID}
	if !m.From.Bot { // other bots of a channel would hide the people
		g.mu.Lock()
		g.refused++
		g.mu.Unlock()
	}
	if m.Context.Group || m.From.Outsider || m.From.Bot || g.access().Mode == AccessAllowlist || g.toldLately(who) {
		return nil, nil
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	open, err := g.pairings(ctx)
	if err != nil {
		return nil, err
	}
	waiting, oldest, err := unnoticed(ctx, open, d.Connector, notices)
	if err != nil {
		return nil, err
	}
	known := g.toldLately(who) || slices.ContainsFunc(open, func(p storage.Pairing) bool { return p.Connector == d.Connector && p.UserID == d.UserID })
	now := time.Now()
	if known || waiting >= pairingOpen && now.Sub(oldest.At.Time()) < pairingAlone {
		return nil, nil
	}
	if waiting >= pairingOpen {
		if err := g.displace(ctx, oldest); err != nil {
			return nil, err
		}
	}
	p := storage.Pairing{
		Code: newCode(), Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID,
		Name: m.From.Name, At: claybot.At(now), Expires: claybot.At(now.Add(pairingValid)),
	}
	out, err := g.store.SavePairing(ctx, p, append(notices.announcement(ctx, p), claybot.Outgoing{
		ID: runs.NewID(), Kind: claybot.OutgoingPairing, Route: m.ReplyRoute(d),
		Text: texts.Of(ctx).Pairing(p.Code), Part: 1, Parts: 1, At: p.At,
	})...)
	if err != nil {
		return nil, fmt.Errorf("save pairing: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) >= 10_000 { // bounded; the store still holds back those with an open code
		clear(g.asked)
	}
	g.asked[who] = now
	return out, nil
}

// unnoticed counts the open requests of a connector of which operators were not notified, and returns
// the oldest of them.
func unnoticed(ctx context.Context, open []storage.Pairing, connector string, notices notices) (n int, oldest storage.Pairing, err error) {
	for _, p := range open {
		if p.Connector != connector {
			continue
		}
		noticed, err := notices.noticed(ctx, p)
		if err != nil {
			return 0, storage.Pairing{}, err
		}
		if noticed {
			continue
		}
		n++
		if oldest.Code == "" || p.At < oldest.At {
			oldest = p
		}
	}
	return n, oldest, nil
}

// displace ends a request that had enough time, so that a few unknown users cannot keep
// all others out. Its user may ask again.
func (g *Gate) displace(ctx context.Context, p storage.Pairing) error {
	if err := g.store.DropPairing(ctx, p.Code); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("drop the oldest pairing: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.asked, subject{p.Connector, p.UserID})
	return nil
}

// toldLately reports whether an unknown user got a code within the last hour.
func (g *Gate) toldLately(who subject) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.asked[who]) < pairingValid
}

// pairings lists the requests of unknown users that are still open.
func (g *Gate) pairings(ctx context.Context) ([]storage.Pairing, error) {
	all, err := g.open(ctx)
	return slices.DeleteFunc(all, invites), err
}

// open lists the requests and invitations that are still open.
func (g *Gate) open(ctx context.Context) ([]storage.Pairing, error) {
	all, err := g.store.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pairings: %w", err)
	}
	now := claybot.Now()
	open := all[:0]
	for _, p := range all {
		if p.Expires > now {
			open = append(open, p)
			continue
		}
		if err := g.store.DropPairing(ctx, p.Code); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, fmt.Errorf("drop expired pairing: %w", err)
		}
	}
	return open, nil
}

// find looks up a code and counts every wrong one.
func (g *Gate) find(ctx context.Context, code string) (storage.Pairing, error) {
	g.mu.Lock()
	locked := time.Now().Before(g.locked)
	g.mu.Unlock()
	if locked {
		return storage.Pairing{}, ErrCodesLocked
	}
	open, err := g.pairings(ctx)
	if err != nil {
		return storage.Pairing{}, err
	}
	for _, p := range open {
		if strings.EqualFold(p.Code, strings.TrimSpace(code)) {
			return p, nil
		}
	}
	g.countWrong(time.Now())
	return storage.Pairing{}, ErrBadCode
}

func (g *Gate) countWrong(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	recent := g.wrong[:0]
	for _, t := range g.wrong {
		if now.Sub(t) < wrongWindow {
			recent = append(recent, t)
		}
	}
	g.wrong = append(recent, now)
	if len(g.wrong) < wrongCodes {
		return
	}
	g.penalty = min(max(lockedFor, 2*g.penalty), lockedAtMost)
	g.locked, g.wrong = now.Add(g.penalty), nil
}

// Grant gives access, and stores that first.
func (g *Gate) Grant(ctx context.Context, x storage.Grant) error {
	_, err := g.grant(ctx, x)
	return err
}

// grant is Grant with a notice that is stored with the grant; it returns the notice as stored.
func (g *Gate) grant(ctx context.Context, x storage.Grant, notice ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	out, err := g.store.Grant(ctx, x, notice...)
	if err != nil {
		return nil, fmt.Errorf("grant %s:%s: %w", x.Connector, x.Subject, err)
	}
	g.Remember(x)
	return out, nil
}

// Remember notes a grant that was stored in another way than by Grant.
func (g *Gate) Remember(x storage.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants[subject{x.Connector, x.Subject}] = x
	if x.Anew {
		delete(g.roles, x.Connector+"/"+x.Subject)
	}
	g.changes++
}

// Revoke removes access and the role, in the store first.
func (g *Gate) Revoke(ctx context.Context, connector, id string) error {
	if err := g.store.Revoke(ctx, connector, id); err != nil {
		return fmt.Errorf("revoke %s:%s: %w", connector, id, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.grants, subject{connector, id})
	delete(g.roles, connector+"/"+id)
	g.changes++
	delete(g.asked, subject{connector, id})
	return nil
}

// newCode returns a pairing code of 40 random bits.
func newCode() string {
	var b [codeLength]byte
	rand.Read(b[:]) // never fails since Go 1.24
	for i := range b {
		b[i] = codeAlphabet[b[i]%32]
	}
	return string(b[:])
}

// Counts returns the number of grants, and of messages of unknown users since the start.
func (g *Gate) Counts() (granted int, refused int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.grants), g.refused
}
