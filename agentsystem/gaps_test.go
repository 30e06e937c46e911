package agentsystem_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
)

// Each chat concerned is told about a gap once: not the chats of others, not
// those that were quiet for long or may not hear from claybot any more, and not
// again after a restart.
func TestMissed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		bob := claybot.User("chat", "dm-bob", "bob")
		group := []claybot.Descriptor{claybot.User("chat", "group", "ann"), claybot.User("chat", "group", "bob")}
		r.say("hi")
		r.post(bob, msg("1", "from bob"))
		for i, d := range group {
			m := msg([]string{"2", "3"}[i], "in the group")
			m.Context = claybot.MessageContext{Group: true, ThreadID: "7"}
			r.post(d, m)
		}
		after(time.Minute)
		from := time.Now().UTC()
		m := connectors.Missed{Connector: "chat", From: from, To: from.Add(25 * time.Hour)}
		seen := len(r.chat.seen())
		tell := func(m connectors.Missed) {
			if _, err := r.system.Missed(r.Context(), m); err != nil {
				t.Fatal(err)
			}
			after(time.Minute)
		}
		other, late := m, m
		other.Connector, late.From = "other", from.Add(40*24*time.Hour)
		tell(other)
		tell(late)
		if got := r.chat.seen()[seen:]; len(got) != 0 {
			t.Errorf("of a gap of another connector, and of one long after their messages, people see %q", got)
		}
		r.mu.Lock()
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:ann", "chat:group"}}
		r.mu.Unlock()
		tell(m)
		tell(m)
		r.restart()
		tell(m)
		if got := r.chat.seen()[seen:]; len(got) != 2 || !strings.Contains(got[0], "I was offline from today at 0:01 UTC to ") {
			t.Errorf("people see %q", got)
		}
		for channel, want := range map[string]int{"dm-ann": 2, "group": 3, "dm-bob": 1} {
			if got := r.chat.seen(channel); len(got) != want {
				t.Errorf("%s sees %q", channel, got)
			}
		}
		if last := r.chat.sent(); last[len(last)-1].out.Route.ThreadID == last[len(last)-2].out.Route.ThreadID {
			t.Errorf("the notice of the group is not in its thread: %+v", last[len(last)-2:])
		}
		m.From, m.Channels, m.Flat = m.From.Add(time.Hour), []string{"group", "unknown"}, true
		tell(m)
		if got := r.chat.sent(); got[len(got)-1].out.Route.ChannelID != "group" || got[len(got)-1].out.Route.ThreadID != "" {
			t.Errorf("the last notice: %+v", got[len(got)-1].out)
		}
	})
}

// Members of a cluster know different times at which a source delivered last: they report one
// outage, and people and operators read of it once. They read of the next one.
func TestOneOutageOfSeveralMembersIsToldOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.bossy()
		r.say("hi")
		after(time.Minute)
		seen := len(r.chat.seen("dm-ann"))
		began := time.Now().UTC()
		day, s := 24*time.Hour, time.Second
		for _, gap := range []struct {
			from, to time.Duration
			want     int
		}{{0, day, 1}, {7 * s, day + 20*s, 1}, {-40 * s, day + 30*s, 1}, {day - s, 2 * day, 2}, {day + 5*s, 2*day + s, 2}} {
			for _, name := range []string{"chat", "far"} {
				m := connectors.Missed{Connector: name, From: began.Add(gap.from), To: began.Add(gap.to)}
				if _, err := r.system.Missed(r.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.bossReads(n); len(got) != 2*gap.want {
				t.Errorf("after the gap from %v to %v the operator reads %q", gap.from, gap.to, got)
			}
			if got := r.chat.seen("dm-ann")[seen:]; len(got) != gap.want {
				t.Errorf("after the gap from %v to %v the chat reads %q", gap.from, gap.to, got)
			}
		}
	})
}

// Chats beyond the bound of a gap are counted: neither their history is read nor are they
// told, and the operator must hear of it.
func TestGapOfManyChats(t *testing.T) {
	t.Parallel()
	const bound, more = 500, 3
	bubble(t, func(r *rig) {
		r.start()
		began := time.Now()
		for i := range bound + more {
			r.post(claybot.User("chat", fmt.Sprint("dm-", i), fmt.Sprint("user", i)), msg(fmt.Sprint(i), "hello"))
		}
		after(time.Minute)
		chats, beyond, err := r.system.Recent(r.Context(), "chat", "", began)
		if err != nil || len(chats) != bound || beyond != more {
			t.Errorf("%d chats and %d more, %v, want %d and %d", len(chats), beyond, err, bound, more)
		}
		if chats, beyond, err = r.system.Recent(r.Context(), "chat", "dm-50", began); err != nil || len(chats) != 4 || beyond != 0 { // dm-50 and 500 to 502
			t.Errorf("within a prefix: %d chats and %d more, %v", len(chats), beyond, err)
		}
		untold, err := r.system.Missed(r.Context(), connectors.Missed{Connector: "chat", From: time.Now(), To: time.Now().Add(25 * time.Hour)})
		if err != nil || untold != more {
			t.Errorf("%d chats are not told, %v, want %d", untold, err, more)
		}
	})
}
