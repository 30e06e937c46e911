package agentsystem_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
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

// Ten wrong codes keep links from working for five minutes, and keep no operator from approving.
func TestWrongInvitations(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		code := r.invite()
		for i := range 10 {
			r.startsWith(fmt.Sprint(i), "eve", "AAAAAAAAAAAAAAAA", nil)
		}
		r.startsWith("a", "ann", code, nil)
		if got := r.granted(); got != "" {
			t.Errorf("while locked: %q", got)
		}
		if _, err := r.system.People.Approve(r.Context(), r.code(0)); err != nil || r.granted() != "eve" {
			t.Errorf("an operator approves: %v, %q", err, r.granted())
		}
		after(5 * time.Minute)
		r.startsWith("b", "ann", code, nil)
		if got := r.granted(); !strings.Contains(got, "ann") {
			t.Errorf("after the lock: %q", got)
		}
	})
}
