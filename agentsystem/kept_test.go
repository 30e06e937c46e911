package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// asker is a user without access.
var asker = claybot.Sender{UserID: "ann"}

// Where threads are conversations of their own, an unknown user has no more room for each.
func TestKeptTextsOfAllThreadsHaveOneBound(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.ownThreads = true
		r.bossAt()
		r.writes("long", asker, "t", strings.Repeat("x", 8<<10-3))
		for i := range 20 {
			r.writes(fmt.Sprint(i), asker, fmt.Sprint("thread ", i), "xx")
		}
		all, err := r.db.ParkedAgents(r.Context(), 100)
		if err != nil || len(all) != 2 {
			t.Errorf("kept in %d threads, want 2: %v", len(all), err)
		}
		asked := len(r.mind.asked())
		r.orders("press", "boss", "approve "+r.codeIn(r.chat.seen("ann")))
		time.Sleep(time.Minute)
		if n := len(r.mind.asked()) - asked; n != 2 {
			t.Errorf("%d model calls after the approval, want 2", n)
		}
	})
}

// The deletion of a kept text names no thread on some platforms; only its sender can delete it.
func TestKeptTextInAThreadIsDeleted(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.ownThreads = true
		r.bossAt()
		r.writes("1", asker, "thread", "my secret")
		for i, user := range []string{"eve", "ann"} {
			d := typed(fmt.Sprint("d", i), claybot.MessageDelete, "")
			d.Amends, d.From = "1", claybot.Sender{UserID: user}
			r.post(private(user), d)
			synctest.Wait()
			if x := r.receipt("1"); (x.Skipped == "deleted") != (user == "ann") || (x.Message.Text == "") != (user == "ann") {
				t.Errorf("after the deletion by %s: %+v", user, x)
			}
		}
	})
}

// An edit of a kept text replaces it: what is answered after the approval is what its sender wrote last.
func TestKeptTextIsEdited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		by, text, want string
		crash          bool
	}{
		"by its sender":       {"ann", "my edited text", "my edited text", false},
		"behind a crash":      {"ann", "my edited text", "my edited text", true},
		"by another":          {"eve", "not mine", "my text", false},
		"to nothing":          {"ann", " ", "my text", false},
		"with a secret":       {"ann", "use 1234567:FAKE-token-that-is-not-a-real-one-at-all", "", false},
		"to one that is long": {"ann", strings.Repeat("x", 8<<10), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				r.ownThreads = true
				r.bossAt()
				r.writes("1", asker, "thread", "my text")
				r.writes("2", asker, "other", "another")
				e := typed("e", claybot.MessageEdit, tt.text)
				e.Amends, e.From = "1", claybot.Sender{UserID: tt.by}
				r.post(private(tt.by), e)
				r.post(private(tt.by), e) // comes again
				synctest.Wait()
				if tt.crash {
					r.crash()
					r.start()
				}
				if x := r.receipt("1"); tt.want != "" && x.Message.Text != tt.want || strings.Contains(x.Message.Text, "FAKE") || len(tt.text) > 1000 && x.Skipped != "inbox_full" {
					t.Errorf("the receipt is %+v", x)
				}
				r.orders("press", "boss", "approve "+r.codeIn(r.chat.seen("ann")))
				time.Sleep(time.Minute)
				got := strings.Join(r.chat.seen("ann"), "|")
				if tt.want != "" && strings.Count(got, "re: "+tt.want) != 1 || tt.want != "my text" && strings.Contains(got, "my text") || strings.Contains(got, "xxx") || strings.Contains(got, "FAKE") || !strings.Contains(got, "re: another") {
					t.Errorf("after the approval, the user reads %.400q", got)
				}
			})
		})
	}
}

// An approval that commits before the denial of another operator wins: what its person wrote is
// answered, and the operator who denied reads so.
func TestADenialBehindAnApprovalErasesNothing(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		first := &firstDropped{}
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			first.Access, s.Access = s.Access, first
			return s
		}
		reads := r.bossAt()
		r.writes("1", asker, "", "one")
		code := r.codeIn(r.chat.seen("ann"))
		first.before = func() {
			if _, err := r.system.People.Approve(context.Background(), code); err != nil {
				t.Error(err)
			}
		}
		r.orders("press", "boss", "deny "+code)
		time.Sleep(time.Minute)
		got := reads()
		if x := r.receipt("1"); x.Skipped != "" || x.Parked != "" || r.granted() != "ann" {
			t.Errorf("granted %q, receipt %+v", r.granted(), x)
		}
		if last := got[len(got)-1]; !strings.HasPrefix(last, "The request of chat:ann is approved already") {
			t.Errorf("the operator reads %q", last)
		}
	})
}

// firstDropped lets before act just before a request is dropped.
type firstDropped struct {
	agentsystem.Access
	before func()
}

func (f *firstDropped) DropPairing(ctx context.Context, code string, notes ...storage.Checkpoint) error {
	if f.before != nil {
		f.before()
	}
	return f.Access.DropPairing(ctx, code, notes...)
}

// What an approved person wrote is kept for an agent that cannot be used, like all other messages.
func TestKeptTextsOfAnUnusableAgentWaitLikeOthers(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.access.Allow = append(r.access.Allow, "chat:ann")
		r.bossAt()
		r.writes("0", asker, "", "zero")
		time.Sleep(time.Minute)
		path := filepath.Join(r.dir, "agents", string(r.agent(private("ann"))), "state.json")
		r.access.Allow = slices.DeleteFunc(r.access.Allow, func(x string) bool { return x == "chat:ann" })
		r.shut()
		if err := errors.Join(os.Rename(path, path+".kept"), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.writes("1", asker, "", "one")
		r.writes("2", asker, "", "two")
		r.orders("press", "boss", "approve "+r.codeIn(r.chat.seen("ann")))
		time.Sleep(time.Minute)
		r.writes("3", asker, "", "three")
		if x := r.status(); x.Parked == nil || x.Parked.Messages != 3 {
			t.Errorf("status %+v", x.Parked)
		}
		if x := r.receipt("1"); x.Parked == storage.ParkedUnapproved || x.Message.Approved == 0 {
			t.Errorf("receipt %+v", x)
		}
		if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for _, id := range []claybot.MessageID{"1", "2", "3"} {
			if x := r.receipt(id); x.Skipped != "revoked" {
				t.Errorf("%s after the revocation: %q %q", id, x.Skipped, x.Parked)
			}
		}
	})
}

// A person who was approved a moment ago has no unusable agent.
func TestStatusRightAfterTheApproval(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.bossAt()
		r.writes("1", asker, "", "one")
		time.Sleep(300 * time.Millisecond)
		r.orders("press", "boss", "approve "+r.codeIn(r.chat.seen("ann")))
		r.post(private("ann"), command("s", "status"))
		time.Sleep(time.Minute)
		if got := strings.Join(r.chat.seen("ann"), "|"); strings.Contains(got, "haven't been able") || strings.Count(got, "re: one") != 1 {
			t.Errorf("the user reads %q", got)
		}
	})
}

// Another member approved the person, and this one does not know it yet.
func TestMessageBehindAnApprovalByAnotherMember(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.bossAt()
		r.writes("1", asker, "", "one")
		if _, err := r.db.Grant(r.Context(), storage.Grant{Connector: "chat", Subject: "ann", At: claybot.Now()}); err != nil {
			t.Fatal(err)
		}
		r.writes("2", asker, "", "two")
		time.Sleep(time.Minute)
		if got := strings.Join(r.chat.seen("ann"), "|"); !strings.Contains(got, "two") || !strings.Contains(got, "re: one") {
			t.Errorf("the user reads %q", got)
		}
	})
}

// The button of a person's earlier request counts as no wrong code.
func TestButtonsOfAnEarlierRequest(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		reads := r.bossAt()
		earlier := r.asks("ann", "Ann", "hi")
		time.Sleep(61 * time.Minute)
		code := r.asks("ann", "Ann", "hi again")
		for i := range 12 {
			r.orders(fmt.Sprint("press", i), "boss", "approve "+earlier)
		}
		r.orders("newer", "boss", "deny "+code)
		got := reads()
		if n := len(got); !strings.HasPrefix(got[n-2], "The request of chat:ann (`Ann`) is no longer open.") || !strings.HasPrefix(got[n-1], "I denied") {
			t.Errorf("the operator reads %q", got)
		}
	})
}

// Access by the stable id decides the request as well.
func TestAllowedByIDClosesTheRequest(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		reads := r.bossAt()
		code := r.asks("ann", "Ann", "hi")
		time.Sleep(time.Minute)
		allowed := claybot.Now()
		if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		if x, ok, err := r.system.People.DecidedRequest(r.Context(), code); err != nil || !ok || x.Verdict != people.VerdictApproved || x.At < allowed {
			t.Errorf("request %+v, %v, %v, %q", x, ok, err, reads())
		}
	})
}

// What a person wrote before a denial is not answered, also where an operator lets them in at once.
func TestAllowedAfterADenial(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.bossAt()
		code := r.asks("ann", "Ann", "let me in")
		if _, err := r.system.People.Refuse(r.Context(), code, people.VerdictDenied); err != nil {
			t.Fatal(err)
		}
		if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		r.post(private("ann"), msg("later", "thanks"))
		time.Sleep(time.Minute)
		synctest.Wait()
		said := strings.Join(r.chat.seen(private("ann").ChannelID), "; ")
		if strings.Contains(said, "let me in") || !strings.Contains(said, "re: thanks") {
			t.Errorf("Ann reads %q", said)
		}
	})
}
