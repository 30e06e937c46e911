package agentsystem_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// private is the direct chat of a user of a platform that names it by the user.
func private(user string) claybot.Descriptor { return claybot.User("chat", user, user) }

// bossAt starts the system, lets the operator write, and returns what they read since.
func (r *rig) bossAt() (since func() []string) {
	r.Helper()
	r.instances = map[string]string{"chat": "telegram"}
	r.access.Allow = append(r.access.Allow, "chat:boss", "chat:9")
	r.start()
	hello := msg("boss hello", "hello")
	hello.From = claybot.Sender{UserID: "boss"}
	r.post(private("boss"), hello)
	synctest.Wait()
	n := len(r.chat.seen("boss"))
	return func() []string { synctest.Wait(); return r.chat.seen("boss")[n:] }
}

// orders posts /pair of a user in their direct chat, as the press of a button does.
func (r *rig) orders(id, user, text string) {
	r.Helper()
	m := command(id, "pair")
	m.Text, m.From = text, claybot.Sender{UserID: user}
	r.post(private(user), m)
	synctest.Wait()
}

// asks lets an unknown user write, and returns the code that they get.
func (r *rig) asks(user, name, text string) string {
	r.Helper()
	m := msg(fmt.Sprint(user, time.Now().UnixNano()), text)
	m.From = claybot.Sender{UserID: user, Name: name}
	r.post(private(user), m)
	synctest.Wait()
	got := r.chat.seen(user)
	if len(got) == 0 || !codeForm.MatchString(got[len(got)-1]) {
		r.Fatalf("%s gets no code: %q", user, got)
	}
	return codeForm.FindStringSubmatch(got[len(got)-1])[1]
}

// An operator is notified of a request in their direct chat, without what its person wrote, and
// decides it by a button: once, also across a crash. A second press says what was decided.
func TestAccessByButton(t *testing.T) {
	t.Parallel()
	for verb, tt := range map[string]struct{ answer, again, granted string }{
		"approve": {"chat:ann (`Ann SYSTEM 'x'`) now has access.", "The request of chat:ann (`Ann SYSTEM 'x'`) is approved already, since ", "ann"},
		"deny":    {"I denied the request of chat:ann (`Ann SYSTEM 'x'`). They get no message about it.", "The request of chat:ann (`Ann SYSTEM 'x'`) is denied already, since ", ""},
		"ignore":  {"I denied the request of chat:ann (`Ann SYSTEM 'x'`), and name no more of theirs for a month. They get no message about it.", "The request of chat:ann (`Ann SYSTEM 'x'`) is denied already, since ", ""},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				reads := r.bossAt()
				code := r.asks("ann", "Ann\nSYSTEM `x`\u202e", "my secret")
				told := reads()
				want := "chat:ann (`Ann SYSTEM 'x'`) asks for access. The name is unverified. The request has the code **" + code + "** and is open until "
				if len(told) != 1 || !strings.HasPrefix(told[0], want) || strings.Contains(told[0], "secret") {
					t.Fatalf("the operator reads %q", told)
				}
				var offers []claybot.Offer
				for _, x := range r.chat.sent() {
					offers = append(offers, x.out.Offer...)
				}
				for i, v := range []string{"approve", "deny", "ignore"} {
					if len(offers) != 3 || offers[i].Command != "/pair "+v+" "+code {
						t.Fatalf("buttons %+v", offers)
					}
				}
				r.orders("other", "9", verb+" "+code) // no operator
				if got := r.chat.seen("9"); len(got) != 1 || !strings.HasPrefix(got[0], "I don't know the command /pair.") || r.granted() != "" {
					t.Errorf("another user reads %q; granted %q", got, r.granted())
				}
				r.crash()
				r.start()
				r.orders("press", "boss", verb+" "+code)
				r.crash()
				r.start()
				r.orders("press", "boss", verb+" "+code) // comes again
				for i := range 12 {                      // more than lock wrong codes
					r.orders(fmt.Sprint("again", i), "boss", "approve "+strings.ToLower(code))
				}
				if got := reads()[1:]; len(got) != 13 || got[0] != tt.answer || !strings.HasPrefix(got[1], tt.again) || !strings.HasPrefix(got[12], tt.again) {
					t.Errorf("the operator reads %q", got)
				}
				if r.granted() != tt.granted {
					t.Errorf("granted %q, want %q", r.granted(), tt.granted)
				}
				// Who was denied may ask again after the hour; who is ignored asks in vain.
				time.Sleep(61 * time.Minute)
				before := len(reads())
				switch verb {
				case "deny":
					r.asks("ann", "Ann", "please")
					if got := reads()[before:]; len(got) != 1 || !strings.Contains(got[0], "asks for access") {
						t.Errorf("after a denial, the operator reads %q", got)
					}
				case "ignore":
					r.asks("ann", "Ann", "please")
					if got := reads()[before:]; len(got) != 0 {
						t.Errorf("of an ignored person, the operator reads %q", got)
					}
				}
			})
		})
	}
}

// A request that ended without a decision says so, and counts as no wrong code.
func TestAccessButtonOfAnEndedRequest(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		reads := r.bossAt()
		code := r.asks("ann", "Ann", "hi")
		time.Sleep(time.Hour)
		for i := range 12 {
			r.orders(fmt.Sprint("late", i), "boss", "approve "+code)
		}
		if got := reads(); len(got) != 13 || got[12] != "The request of chat:ann (`Ann`) is no longer open. If they write again, they get a new code." {
			t.Errorf("the operator reads %q", got)
		}
	})
}

// A flood of unknown users reaches operators as five notices and one more within an hour, also
// across restarts.
func TestAccessNoticesAreFew(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		reads := r.bossAt()
		for i := range 100 {
			m := msg(fmt.Sprint("m", i), "hello")
			m.From = claybot.Sender{UserID: fmt.Sprint("u", i), Name: "Flood"}
			r.post(private(m.From.UserID), m)
			time.Sleep(30 * time.Second)
			if i%20 == 0 {
				r.restart()
			}
		}
		got := reads()
		if len(got) != 6 || !strings.HasPrefix(got[5], "More people ask for access.") {
			t.Errorf("within an hour, the operator reads %d notices: %q", len(got), got)
		}
		time.Sleep(time.Hour)
		r.asks("ann", "Ann", "hi")
		if got := reads()[6:]; len(got) != 1 || !strings.Contains(got[0], "chat:ann") {
			t.Errorf("in the next hour, the operator reads %q", got)
		}
	})
}
