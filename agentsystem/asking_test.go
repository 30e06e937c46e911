package agentsystem_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
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

// writes lets a user who may be unknown write in a thread of their direct chat.
func (r *rig) writes(id string, who claybot.Sender, thread, text string) {
	r.Helper()
	m := msg(id, text)
	m.From = who
	m.Context.ThreadID, m.Context.MessageID = thread, id
	r.post(private(who.UserID), m)
	synctest.Wait()
}

// asks lets an unknown user write, and returns the code that they get.
func (r *rig) asks(user, name, text string) string {
	r.Helper()
	before := len(r.chat.seen(user))
	r.writes(fmt.Sprint(user, time.Now().UnixNano()), claybot.Sender{UserID: user, Name: name}, "", text)
	return r.codeIn(r.chat.seen(user)[before:])
}

// codeIn returns the code in what a user has read.
func (r *rig) codeIn(texts []string) string {
	r.Helper()
	for _, text := range slices.Backward(texts) {
		if got := codeForm.FindStringSubmatch(text); got != nil {
			return got[1]
		}
	}
	r.Fatalf("there is no code in %q", texts)
	return ""
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

// A request that operators have in a notice of its own keeps its code for its hour, whatever others do; those
// behind the last notice are few, and make room for others.
func TestNoticedRequestStays(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.bossAt()
		code := r.asks("ann", "Ann", "hello")
		for i := range 12 {
			time.Sleep(4 * time.Minute)
			user := fmt.Sprint("stranger", i)
			r.writes(user, claybot.Sender{UserID: user}, "", "hello")
		}
		open, err := r.db.Pairings(r.Context())
		if err != nil || len(open) > 5+3 || !slices.ContainsFunc(open, func(p storage.Pairing) bool { return p.Code == code }) {
			t.Errorf("%d requests are open, %v: %+v", len(open), err, open)
		}
		r.orders("press", "boss", "approve "+code)
		time.Sleep(time.Minute)
		if got := strings.Join(r.chat.seen("ann"), "|"); !strings.Contains(got, "re: hello") {
			t.Errorf("after the approval, the user reads %q", got)
		}
	})
}

// What an unknown user wrote is answered once they are approved: once, in order, behind a crash at
// each step and before what they write next. Before that, no model sees it.
func TestFirstMessagesAreAnsweredAfterApproval(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]bool{"at once": false, "behind a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				reads := r.bossAt()
				again := func() {
					if crash {
						r.crash()
						r.start()
					}
				}
				asked := len(r.mind.asked())
				write := func(id, text string) {
					m := msg(id, text)
					m.Type = claybot.MessageUser
					r.post(private("ann"), m)
				}
				write("1", "one")
				synctest.Wait()
				code := codeForm.FindStringSubmatch(r.chat.seen("ann")[0])[1]
				again()
				write("1", "one") // comes again
				write("2", "two")
				write("3", "three")
				write("4", "four") // one too many
				again()
				time.Sleep(time.Minute)
				if got := r.chat.seen("ann"); len(got) != 1 || len(r.mind.asked()) != asked {
					t.Fatalf("before the approval, the user reads %q, %d calls", got, len(r.mind.asked())-asked)
				}
				if x := r.receipt("1"); x.Parked != storage.ParkedUnapproved {
					t.Errorf("receipt %+v", x)
				}
				status, err := r.system.Overview.Status(r.Context())
				if err != nil || status.Parked != nil || status.Faulty != 0 {
					t.Errorf("status %+v, %v", status.FaultStatus, err)
				}
				r.orders("press", "boss", "approve "+code)
				again()
				write("5", "five")
				time.Sleep(time.Minute)
				got := strings.Join(r.chat.seen("ann")[1:], "|")
				// A run may answer one of the kept messages, or several: then it names the last of them.
				answers := regexp.MustCompile(`^Your access is approved[^|]*(\|re: one)?(\|re: two)?(\|re: three)?\|re: five$`)
				if !answers.MatchString(got) {
					t.Errorf("the user reads %q", got)
				}
				var said []string
				for _, x := range r.records(private("ann")) {
					if x.Type == claybot.RecordUser {
						said = append(said, x.Text)
					}
				}
				if strings.Join(said, " ") != "one two three five" {
					t.Errorf("the agent reads %q", said)
				}
				if x := r.receipt("1"); x.Message.Approved == 0 || x.Skipped != "" {
					t.Errorf("receipt %+v", x)
				}
				if got := strings.Join(reads(), " "); strings.Contains(got, "one") && strings.Contains(got, "two") {
					t.Errorf("the operator reads %q", got)
				}
			})
		})
	}
}

// What an unknown user wrote is erased when they are denied, when their request ends, and when they
// delete it; its receipt says so.
func TestFirstMessagesAreErased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act  func(r *rig, code string)
		want string
	}{
		"denied":  {func(r *rig, code string) { r.orders("p", "boss", "deny "+code) }, "access_denied"},
		"ignored": {func(r *rig, code string) { r.orders("p", "boss", "ignore "+code) }, "access_denied"},
		"expired": {func(*rig, string) { time.Sleep(time.Hour) }, "not_approved"},
		"deleted": {func(r *rig, _ string) {
			m := typed("d", claybot.MessageDelete, "")
			m.Amends = "1"
			r.post(private("ann"), m)
		}, storage.SkippedDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				r.bossAt()
				asked := len(r.mind.asked())
				r.post(private("ann"), msg("1", "my secret"))
				synctest.Wait()
				tt.act(r, codeForm.FindStringSubmatch(r.chat.seen("ann")[0])[1])
				r.restart()
				time.Sleep(time.Minute)
				if x := r.receipt("1"); x.Skipped != tt.want || x.Message.Text != "" {
					t.Errorf("receipt %+v", x)
				}
				if err := r.system.People.Allow(r.Context(), "chat", "ann"); err != nil {
					t.Fatal(err)
				}
				r.post(private("ann"), msg("1", "my secret")) // comes again
				time.Sleep(time.Minute)
				if got := r.chat.seen("ann"); len(got) != 1 || len(r.mind.asked()) != asked {
					t.Errorf("the user reads %q, %d calls", got, len(r.mind.asked())-asked)
				}
			})
		})
	}
}

// Only texts of people in direct chats who have an open request are kept, and not much of them.
func TestFewFirstMessagesAreKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*claybot.AgentMessage){
		"file":    func(m *claybot.AgentMessage) { m.Files = []claybot.FileReference{{Name: "x"}} },
		"command": func(m *claybot.AgentMessage) { m.Type, m.Command = claybot.MessageCommand, "help" },
		"reset":   func(m *claybot.AgentMessage) { m.Type = claybot.MessageReset },
		"empty":   func(m *claybot.AgentMessage) { m.Text = " " },
		"long":    func(m *claybot.AgentMessage) { m.Text = strings.Repeat("x", 8<<10+1) },
		"group":   func(m *claybot.AgentMessage) { m.Context.Group = true },
		"bot":     func(m *claybot.AgentMessage) { m.From.Bot = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pairing(t, func(r *rig) {
				r.bossAt()
				m := msg("1", "hello")
				change(&m)
				r.post(private("ann"), m)
				synctest.Wait()
				if all, err := r.db.ParkedAgents(r.Context(), 10); err != nil || len(all) != 0 {
					t.Errorf("kept: %+v, %v", all, err)
				}
			})
		})
	}
}
