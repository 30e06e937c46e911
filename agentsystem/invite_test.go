package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// startsWith sends /start with a code in the direct chat of a user.
func (r *rig) startsWith(id, user, code string, change func(*claybot.AgentMessage)) {
	r.Helper()
	m := command(id, "start")
	m.Text, m.FirstHand, m.From = code, true, claybot.Sender{UserID: user, Name: user}
	if change != nil {
		change(&m)
	}
	if err := r.system.Post(r.Context(), claybot.User("chat", "dm-"+user, user), m); err != nil {
		r.Error(err)
	}
	synctest.Wait()
}

// invite makes an invitation and returns its code.
func (r *rig) invite() string {
	r.Helper()
	p, err := r.system.People.Invite(r.Context(), "chat")
	if err != nil || len(p.Code) != 16 || time.Until(p.Expires.Time()) > people.InvitationValid {
		r.Fatalf("%+v, %v", p, err)
	}
	return p.Code
}

// granted returns who has access by a grant.
func (r *rig) granted() string {
	r.Helper()
	all, err := r.system.People.Grants(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var who []string
	for _, g := range all {
		who = append(who, g.Subject)
	}
	return strings.Join(who, " ")
}

// An invitation gives access to the first user who sends its code in a direct chat, also after a
// crash, and to no other; it is no request, and no longer valid than it says.
func TestInvitation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act  func(r *rig)
		want string
	}{
		"first":         {func(r *rig) { r.startsWith("1", "ann", r.invite(), nil) }, "ann"},
		"after a crash": {func(r *rig) { code := r.invite(); r.crash(); r.start(); r.startsWith("1", "ann", code, nil) }, "ann"},
		"second": {func(r *rig) {
			code := r.invite()
			r.startsWith("1", "ann", code, nil)
			r.startsWith("2", "bob", code, nil)
		}, "ann"},
		"redelivered": {func(r *rig) {
			code := r.invite()
			r.startsWith("1", "ann", code, nil)
			r.startsWith("1", "ann", code, nil)
		}, "ann"},
		"replaced": {func(r *rig) { code := r.invite(); r.invite(); r.startsWith("1", "ann", code, nil) }, ""},
		"expired":  {func(r *rig) { code := r.invite(); after(people.InvitationValid); r.startsWith("1", "ann", code, nil) }, ""},
		"wrong":    {func(r *rig) { r.startsWith("1", "ann", strings.Repeat("A", len(r.invite())), nil) }, ""},
		"in a group": {func(r *rig) {
			r.startsWith("1", "ann", r.invite(), func(m *claybot.AgentMessage) { m.Context.Group = true })
		}, ""},
		"by a bot": {func(r *rig) {
			r.startsWith("1", "ann", r.invite(), func(m *claybot.AgentMessage) { m.From.Bot = true })
		}, ""},
		"approved by an operator": {func(r *rig) {
			if _, err := r.system.People.Approve(r.Context(), r.invite()); err == nil {
				r.Error("an invitation was approved")
			}
			if open, err := r.system.People.Pairings(r.Context()); err != nil || len(open) > 0 {
				r.Errorf("%+v, %v", open, err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				r.start()
				tt.act(r)
				if got := r.granted(); got != tt.want {
					t.Errorf("access has %q, want %q", got, tt.want)
				}
				approved := 0
				for _, text := range r.chat.seen() {
					if strings.HasPrefix(text, "Your access is approved") {
						approved++
					}
				}
				if approved != len(strings.Fields(tt.want)) {
					t.Errorf("people see %q", r.chat.seen())
				}
			})
		})
	}
}

// Of two users who send a code at once, one has access.
func TestInvitationIsSpentOnce(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		code := r.invite()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				m := command(fmt.Sprint("m", i), "start")
				m.Text, m.FirstHand = code, true
				if err := r.system.Post(r.Context(), claybot.User("chat", fmt.Sprint("dm", i), fmt.Sprint("u", i)), m); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := strings.Fields(r.granted()); len(got) != 1 {
			t.Errorf("access have %q", got)
		}
	})
}

// Wrong codes and the parameters of other links lock no invitation and keep no operator from
// approving; what has not the length of a code costs no read.
func TestWrongInvitations(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		var reads atomic.Int64
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Access = inviteFault{Access: s.Access, f: r.fuse, reads: &reads}
			return s
		}
		r.start()
		code := r.invite()
		r.startsWith("first", "eve", "ref", nil)
		before := reads.Load()
		for i := range 20 {
			r.startsWith(fmt.Sprint("ref", i), "eve", "spring-sale", nil)
		}
		if n := reads.Load() - before; n > 0 {
			t.Errorf("%d reads for parameters of other links", n)
		}
		for i := range 50 {
			r.startsWith(fmt.Sprint(i), "eve", "AAAAAAAAAAAAAAAA", nil)
		}
		r.startsWith("a", "ann", code, nil)
		if got := r.granted(); got != "ann" {
			t.Errorf("after wrong codes: %q", got)
		}
		if _, err := r.system.People.Approve(r.Context(), r.code(0)); err != nil || r.granted() != "ann eve" {
			t.Errorf("an operator approves: %v, %q", err, r.granted())
		}
	})
}

// An inviteFault counts the changes of access as steps of a fuse. It returns fail once in place
// of a grant.
type inviteFault struct {
	agentsystem.Access
	f     *fuse
	fail  *error
	reads *atomic.Int64
}

func (a inviteFault) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	if a.reads != nil {
		a.reads.Add(1)
	}
	return a.Access.Pairings(ctx)
}

func (a inviteFault) Grant(ctx context.Context, g storage.Grant, notice ...claybot.Outgoing) (out []claybot.Outgoing, err error) {
	if a.fail != nil && *a.fail != nil {
		err, *a.fail = *a.fail, nil
		return nil, err
	}
	err = a.f.step("grant", func() error { out, err = a.Access.Grant(ctx, g, notice...); return err })
	return out, err
}

func (a inviteFault) DropPairing(ctx context.Context, code string, notes ...storage.Checkpoint) error {
	return a.f.step("drop pairing", func() error { return a.Access.DropPairing(ctx, code, notes...) })
}

// A crash or a fault at any change of the store loses no invitation: the person who sends its code
// again has access, once, and reads so once.
func TestInvitationSurvivesFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps int   // after which the process dies; 0: it lives
		fail  error // of the first grant
	}{
		"a crash after the first change": {steps: 1},
		"a grant that fails":             {fail: errors.New("broken")},
		"a full disk":                    {fail: storage.ErrFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				fail := tt.fail
				r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
					s.Access = inviteFault{Access: s.Access, f: r.fuse, fail: &fail}
					return s
				}
				r.start()
				code := r.invite()
				r.fuse.blowIn(tt.steps)
				m := command("1", "start")
				m.Text, m.FirstHand, m.From = code, true, claybot.Sender{UserID: "ann"}
				_ = r.system.Post(r.Context(), claybot.User("chat", "dm-ann", "ann"), m) // which it may fail
				synctest.Wait()
				if tt.steps > 0 {
					r.crash()
					r.start()
				}
				r.startsWith("1", "ann", code, nil)
				r.startsWith("1", "ann", code, nil)
				r.startsWith("2", "bob", code, nil)
				after(time.Minute)
				if got := r.granted(); got != "ann" {
					t.Errorf("access has %q", got)
				}
				approved, welcome := 0, 0
				for _, text := range r.chat.seen("dm-ann") {
					if strings.Contains(text, "Your access is approved") {
						approved++
					} else {
						welcome++
					}
				}
				if approved != 1 || welcome != 1 { // a start with access is welcomed
					t.Errorf("ann sees %q", r.chat.seen("dm-ann"))
				}
			})
		})
	}
}
