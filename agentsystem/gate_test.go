package agentsystem_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

var codeForm = regexp.MustCompile(`\*\*([2-9A-HJ-NP-Z]{8})\*\*`)

// code is the pairing code in the i-th post.
func (r *rig) code(i int) string {
	r.Helper()
	synctest.Wait()
	got := r.chat.seen()
	if len(got) <= i {
		r.Fatalf("no post %d: %q", i, got)
	}
	m := codeForm.FindStringSubmatch(got[i])
	if m == nil || !strings.Contains(got[i], "claybot pair approve "+m[1]) {
		r.Fatalf("no code in %q", got[i])
	}
	return m[1]
}

func dm(user string) claybot.Descriptor { return claybot.User("chat", "dm-"+user, user) }

func pairing(t *testing.T, test func(r *rig)) {
	bubble(t, func(r *rig) {
		r.access.Mode = people.AccessPairing
		test(r)
	})
}

// A stranger gets one code an hour and nothing else: no agent, no model call
// (CN-03). Approved, he is told so and is answered, also after a restart.
func TestPairing(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		r.say("hello", "anybody?")
		r.post(ann, command("h", "help"), stop("s"), reset("r", "x"))
		code := r.code(0)
		r.restart()
		r.say("still there?")
		synctest.Wait()
		if got := r.chat.seen(); len(got) != 1 {
			t.Errorf("a stranger was told %q", got)
		}
		if len(r.mind.asked()) != 0 || len(r.directories()) != 0 {
			t.Errorf("%d model calls, agents %q", len(r.mind.asked()), r.directories())
		}
		open, err := r.system.People.Pairings(r.Context())
		if err != nil || len(open) != 1 || open[0].UserID != "ann" || open[0].Name != "Ann" {
			t.Errorf("pairings %+v, %v", open, err)
		}
		if _, err := r.system.People.Approve(r.Context(), " "+strings.ToLower(code)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.chat.seen(); len(got) < 2 || !strings.HasPrefix(got[1], "Your access is approved") {
			t.Errorf("people see %q", got)
		}
		r.restart()
		r.say("now?")
		synctest.Wait()
		if got := r.chat.seen(); got[len(got)-1] != "re: now?" {
			t.Errorf("people see %q", got)
		}
		if _, err := r.system.People.Approve(r.Context(), code); !errors.Is(err, people.ErrBadCode) {
			t.Errorf("the same code again: %v", err)
		}
		grants, err := r.system.People.Grants(r.Context())
		if err != nil || len(grants) != 1 || grants[0].Subject != "ann" {
			t.Errorf("grants %+v, %v", grants, err)
		}
	})
}

// A code is valid for an hour; then the stranger gets another.
func TestPairingExpires(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		r.say("a")
		first := r.code(0)
		after(59 * time.Minute)
		r.say("b")
		after(time.Minute)
		if _, err := r.system.People.Approve(r.Context(), first); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("an old code: %v", err)
		}
		r.say("c")
		if second := r.code(1); second == first {
			t.Error("the same code again")
		}
		if got := r.chat.seen(); len(got) != 2 {
			t.Errorf("people see %q", got)
		}
	})
}

// A denied stranger hears nothing.
func TestPairingDenied(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		r.say("a")
		code := r.code(0)
		if err := r.system.People.Deny(r.Context(), code); err != nil {
			t.Fatal(err)
		}
		if err := r.system.People.Deny(r.Context(), code); !errors.Is(err, people.ErrBadCode) {
			t.Errorf("denied twice: %v", err)
		}
		r.say("b")
		synctest.Wait()
		if got := r.chat.seen(); len(got) != 1 {
			t.Errorf("people see %q", got)
		}
	})
}

// Three codes are open on one connector, however many strangers write at once.
func TestThreePairingsAtMost(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		var all sync.WaitGroup
		for i := range 20 {
			user := fmt.Sprint("u", i%10)
			all.Go(func() {
				m := msg(fmt.Sprint("m", i), "hello")
				if err := r.system.Post(r.Context(), claybot.User("chat", fmt.Sprint("dm", i), user), m); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		open, err := r.system.People.Pairings(r.Context())
		if err != nil || len(open) != 3 || len(r.chat.seen()) != 3 {
			t.Errorf("%d open pairings, %d codes sent, %v", len(open), len(r.chat.seen()), err)
		}
		// When one is approved, there is room for another.
		if _, err := r.system.People.Approve(r.Context(), open[0].Code); err != nil {
			t.Fatal(err)
		}
		r.post(dm("late"), msg("late", "hello"))
		if open, err = r.system.People.Pairings(r.Context()); err != nil || len(open) != 3 || open[2].UserID != "late" {
			t.Errorf("pairings %+v, %v", open, err)
		}
	})
}

// Three unknown users who wait do not keep the others out: after ten minutes the oldest
// makes room for the next one, who may then keep it for as long. A flood of a thousand gets
// no more codes than that.
func TestNewcomersGetTheirTurn(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		write := func(user string) (open []string) {
			r.post(dm(user), msg(user+fmt.Sprint(time.Now().UnixNano()), "hello"))
			synctest.Wait()
			all, err := r.system.People.Pairings(r.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				open = append(open, p.UserID)
			}
			slices.Sort(open)
			return open
		}
		for _, user := range []string{"s1", "s2", "s3"} {
			write(user)
			after(time.Minute)
		}
		if got := write("ann"); !slices.Equal(got, []string{"s1", "s2", "s3"}) {
			t.Errorf("at once: %q", got)
		}
		after(7*time.Minute + 30*time.Second)
		if got := write("ann"); !slices.Equal(got, []string{"ann", "s2", "s3"}) {
			t.Errorf("after ten minutes: %q", got)
		}
		for i := range 1000 {
			write(fmt.Sprint("flood", i))
		}
		if got, codes := write("bob"), len(r.chat.seen()); !slices.Equal(got, []string{"ann", "s2", "s3"}) || codes != 4 {
			t.Errorf("in a flood: %q, %d codes", got, codes)
		}
		after(2 * time.Minute)
		if got := write("s1"); !slices.Equal(got, []string{"ann", "s1", "s3"}) {
			t.Errorf("who made room asks again: %q", got)
		}
	})
}

// Ten wrong codes lock the door for a while, for right ones too, and longer the
// next time.
func TestWrongCodes(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		r.say("a")
		code := r.code(0)
		guess := func(want error) {
			t.Helper()
			if _, err := r.system.People.Approve(r.Context(), "AAAAAAAA"); !errors.Is(err, want) {
				t.Errorf("a wrong code: %v, want %v", err, want)
			}
		}
		for range 10 {
			guess(people.ErrBadCode)
		}
		if _, err := r.system.People.Approve(r.Context(), code); !errors.Is(err, people.ErrCodesLocked) {
			t.Errorf("the right code while locked: %v", err)
		}
		if err := r.system.People.Deny(r.Context(), code); !errors.Is(err, people.ErrCodesLocked) {
			t.Errorf("deny while locked: %v", err)
		}
		after(5 * time.Minute)
		for range 10 {
			guess(people.ErrBadCode)
		}
		after(5 * time.Minute)
		guess(people.ErrCodesLocked)
		after(5 * time.Minute)
		if _, err := r.system.People.Approve(r.Context(), code); err != nil {
			t.Errorf("the right code: %v", err)
		}
		for range 30 { // spread out, wrong codes lock nothing
			guess(people.ErrBadCode)
			after(2 * time.Minute)
		}
	})
}

// Who may speak under which mode, by stable ids only (CN-02).
func TestWhoMaySpeak(t *testing.T) {
	group := func(channel, user string) (claybot.Descriptor, claybot.MessageContext) {
		return claybot.User("chat", channel, user), claybot.MessageContext{Group: true}
	}
	direct := func(channel, user string) (claybot.Descriptor, claybot.MessageContext) {
		return claybot.User("chat", channel, user), claybot.MessageContext{}
	}
	tests := []struct {
		name   string
		access people.Access
		who    func(string, string) (claybot.Descriptor, claybot.MessageContext)
		channel,
		user string
		want string // answered, code, or silence
	}{
		{"open", people.Access{Mode: people.AccessOpen}, direct, "d", "u", "answered"},
		{"person of another team by id", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:T2/U1"}}, direct, "T1/D1", "T2/U1", "answered"},
		{"open group", people.Access{Mode: people.AccessOpen}, group, "g", "u", "answered"},
		{"no mode is pairing", people.Access{}, direct, "d", "u", "code"},
		{"pairing in a group", people.Access{Mode: people.AccessPairing}, group, "g", "u", "silence"},
		{"listed under pairing", people.Access{Mode: people.AccessPairing, Allow: []string{"chat:u"}}, direct, "d", "u", "answered"},
		{"listed", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:u"}}, direct, "d", "u", "answered"},
		{"not listed", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:u"}}, direct, "d", "v", "silence"},
		{"listed elsewhere", people.Access{Mode: people.AccessAllowlist, Allow: []string{"other:u"}}, direct, "d", "u", "silence"},
		{"by name", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:Ann"}}, direct, "d", "u", "silence"},
		{"person in a group", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:u"}}, group, "g", "u", "silence"},
		{"group", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:g"}}, group, "g", "u", "answered"},
		{"team and channel", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:T1/C1"}}, group, "T1/C1", "U1", "answered"},
		{"channel of any team", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:C1"}}, group, "T1/C1", "U1", "answered"},
		{"channel of another team", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:T2/C1"}}, group, "T1/C1", "U1", "silence"},
		{"the team alone", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:T1"}}, group, "T1/C1", "U1", "silence"},
		{"person of another team", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:U1"}}, direct, "T1/D1", "T2/U1", "silence"},
		{"empty entry", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:", "chat", ""}}, group, "T1/", "U1", "silence"},
		{"trusted connector", people.Access{Mode: people.AccessAllowlist, Trusted: []string{"chat"}}, direct, "d", "u", "answered"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.access = tt.access
				r.start()
				d, where := tt.who(tt.channel, tt.user)
				m := msg("a", "a")
				m.Context = where
				r.post(d, m)
				synctest.Wait()
				got := "silence"
				switch seen := r.chat.seen(); {
				case slices.Equal(seen, []string{"re: a"}):
					got = "answered"
				case len(seen) == 1 && codeForm.MatchString(seen[0]):
					got = "code"
				case len(seen) > 0:
					t.Errorf("people see %q", seen)
				}
				if got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if (len(r.directories()) == 1) != (tt.want == "answered") || (len(r.mind.asked()) == 1) != (tt.want == "answered") {
					t.Errorf("agents %q, %d model calls", r.directories(), len(r.mind.asked()))
				}
				status, err := r.system.Overview.Status(r.Context())
				if err != nil || (status.Access.Refused == 1) != (tt.want != "answered") {
					t.Errorf("status %+v, %v", status.Access, err)
				}
			})
		})
	}
}

// Outsiders need access themselves (F5, SL-19): that of a channel does not cover them, no
// code invites them, and open access ends with the organization.
func TestOutsiders(t *testing.T) {
	t.Parallel()
	allow := func(ids ...string) people.Access {
		return people.Access{Mode: people.AccessPairing, Allow: ids}
	}
	open := people.Access{Mode: people.AccessOpen}
	for _, tt := range []struct {
		name         string
		access       people.Access
		user         string
		group, heard bool
	}{
		{"user of another team", allow("chat:U1"), "T2/U1", false, false},
		{"listed user of another team", allow("chat:T2/U1"), "T2/U1", false, true},
		{"in an allowed channel", allow("chat:T1/C1", "chat:U1"), "T2/U1", true, false},
		{"by the other team", allow("chat:T1/C1", "chat:T2"), "T2/U1", true, false},
		{"listed in an allowed channel", allow("chat:T1/C1", "chat:T2/U1"), "T2/U1", true, true},
		{"listed in another channel", allow("chat:T1/C2", "chat:T2/U1"), "T2/U1", true, false},
		{"open access", open, "T2/U1", false, false},
		{"open access in a channel", open, "T2/U1", true, false},
		{"guest in an allowed channel", allow("chat:T1/C1"), "U1", true, false},
		{"listed guest in an allowed channel", allow("chat:T1/C1", "chat:U1"), "U1", true, true},
		{"guest under open access", open, "U1", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.access = tt.access
				r.start()
				d := claybot.User("chat", "T1/D1", tt.user)
				if tt.group {
					d.ChannelID = "T1/C1"
				}
				m := msg("a", "a")
				m.Context.Group, m.From.Outsider = tt.group, true
				r.post(d, m)
				synctest.Wait()
				if got := r.chat.seen(); (len(got) == 1) != tt.heard || len(r.mind.asked()) != len(got) {
					t.Errorf("people see %q", got)
				}
				command := reset("r", "")
				command.Context, command.From = m.Context, m.From
				r.post(d, command)
				synctest.Wait()
				if got := r.chat.seen(); (len(got) == 2) != tt.heard {
					t.Errorf("after a command people see %q", got)
				}
			})
		})
	}
}

// A revoked person's run ends, what waits is dropped, and nothing more is sent;
// others are not touched.
func TestRevoke(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.mind.hold("long", time.Minute)
		r.start()
		for _, user := range []string{"ann", "bob"} {
			if err := r.system.People.Allow(r.Context(), "chat", user); err != nil {
				t.Fatal(err)
			}
		}
		r.chat.will(slow(10*time.Second, false))
		r.say("quick") // its answer waits for the platform
		synctest.Wait()
		r.say("long")
		synctest.Wait()
		r.say("waiting")
		r.post(dm("bob"), msg("bob", "bob"))
		synctest.Wait()
		if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Minute)
		r.wants("re: bob")
		if run := r.receipt("long").Run; run.State != claybot.RunCanceled {
			t.Errorf("the run is %s", run.State)
		}
		if got := r.receipt("waiting"); got.Skipped != "revoked" || got.Run != nil {
			t.Errorf("the waiting message: %+v", got)
		}
		if o := r.reply("quick"); o.State != claybot.SendFailed || !strings.Contains(o.Cause, "revoked") {
			t.Errorf("the reply: %+v", o)
		}
		if err := r.system.Control.Revoke(r.Context(), "chat", "ann"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("revoked twice: %v", err)
		}
		r.say("again")
		r.code(1)
	})
}

// A user of another organization who is revoked loses access in channels as well, although
// the channel keeps its own.
func TestRevokeOutsider(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.mind.hold("long", time.Minute)
		r.start()
		for _, id := range []string{"T1/C1", "T2/U1"} {
			if err := r.system.People.Allow(r.Context(), "chat", id); err != nil {
				t.Fatal(err)
			}
		}
		d := claybot.User("chat", "T1/C1", "T2/U1")
		m := msg("long", "long")
		m.Context.Group, m.From.Outsider = true, true
		r.post(d, m)
		synctest.Wait()
		if err := r.system.Control.Revoke(r.Context(), "chat", "T2/U1"); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Minute)
		if run := r.receipt("long").Run; run == nil || run.State != claybot.RunCanceled || len(r.chat.seen()) != 0 {
			t.Errorf("the run is %+v, people see %q", run, r.chat.seen())
		}
		if r.system.People.MayWrite(d) {
			t.Error("the agent's person may still write")
		}
	})
}

// Ids must be there.
func TestAllowNeedsIDs(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.start()
		for _, pair := range [][2]string{{"", "u"}, {"chat", ""}} {
			if err := r.system.People.Allow(r.Context(), pair[0], pair[1]); err == nil {
				t.Errorf("allowed %q", pair)
			}
		}
	})
}

// A message without an identity is refused with an error, and nothing is made
// of it.
func TestPostChecksMessages(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		for name, post := range map[string]struct {
			d claybot.Descriptor
			m claybot.AgentMessage
		}{
			"no id":        {ann, msg("", "a")},
			"no user":      {claybot.User("chat", "c", ""), msg("a", "a")},
			"no channel":   {claybot.User("chat", "", "u"), msg("a", "a")},
			"no connector": {claybot.User("", "c", "u"), msg("a", "a")},
			"no type":      {claybot.Descriptor{Connector: "chat", ChannelID: "c", UserID: "u"}, msg("a", "a")},
		} {
			if err := r.system.Post(r.Context(), post.d, post.m); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if got := r.directories(); len(got) != 0 {
			t.Errorf("agents %q", got)
		}
	})
}

// Nothing that people or operators must not see leaks into files others read.
func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		synctest.Wait()
		for _, name := range []string{"agents", "agents/" + string(r.agent(ann))} {
			info, err := os.Stat(r.dir + "/" + name)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	})
}
