package agentsystem_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// pauses requires how long a chat was left alone between its sends, each up to a
// quarter more.
func (r *rig) pauses(want ...time.Duration) {
	r.Helper()
	sent := r.chat.sent()
	if len(sent) != len(want)+1 {
		r.Fatalf("%d sends, want %d", len(sent), len(want)+1)
	}
	for i, least := range want {
		if got := sent[i+1].at.Sub(sent[i].at); got < least || got > least*5/4 {
			r.Errorf("pause %d is %v, want about %v", i+1, got, least)
		}
	}
}

func resends(l *line) connectors.Connector { return resendingLine{l, true} }

// The pauses of a chat grow with each ambiguous send in a row, over all of its
// messages, and begin anew once a send succeeds.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = resends
		r.setPolicy(oneByOne)
		r.chat.will(cut, cut, cut, cut, cut, cut, verdict{}, verdict{}, verdict{}, cut)
		r.start()
		r.say("a", "b", "c")
		after(time.Hour)
		// Three answers, each sent twice, and one notice about all of them.
		r.wants(mayBeMissing)
		const s = time.Second
		r.pauses(2*s, 8*s, 32*s, 128*s, 300*s, 300*s)
		r.say("d", "e")
		after(time.Second)
		r.say("f")
		after(time.Minute)
		r.wants(mayBeMissing, "re: d", "re: e", "re: f")
		sent := r.chat.sent()
		if got := sent[len(sent)-1].at.Sub(sent[len(sent)-2].at); got < 2*s || got > 3*s {
			t.Errorf("the pause after a success is %v", got)
		}
	})
}

// A pause survives an orderly restart and a crash: the second send comes when it
// would have come.
func TestPauseSurvivesTheProcess(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"restart": (*rig).restart,
		"crash":   func(r *rig) { r.crash(); r.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = resends
				r.setPolicy(oneByOne)
				r.grace = time.Millisecond
				r.chat.will(cut, cut, cut)
				r.start()
				r.say("a")
				after(time.Second)
				r.say("b")
				after(19 * time.Second) // b was tried once, and waits
				end(r)
				after(time.Hour)
				r.wants("re: b", mayBeMissing)
				sent := r.chat.sent()
				if len(sent) != 5 || sent[2].out.Text != "re: b" {
					t.Fatalf("sent %+v", sent)
				}
				if got := sent[3].at.Sub(sent[2].at); got < 32*time.Second || got > 41*time.Second {
					t.Errorf("the pause is %v", got)
				}
			})
		})
	}
}

// A clock that was set back by an hour while a message waited, and while a send of
// unknown fate was looked up, makes neither wait longer.
func TestClockSetBackDuringAPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = func(l *line) connectors.Connector { return findingLine{l} }
		r.start()
		ahead := time.Now().Add(time.Hour) // what the clock showed before
		row := func(i int, state claybot.SendState, due time.Time) claybot.Outgoing {
			return claybot.Outgoing{
				ID: fmt.Sprint("o", i), Kind: claybot.OutgoingAnswer, Route: ann.Route(), Text: fmt.Sprint("text ", i), Part: 1, Parts: 1,
				At: claybot.At(ahead.Add(-time.Minute)), State: state, Attempts: 1, Tried: claybot.At(ahead), Due: claybot.At(due), Copies: i % 2,
			}
		}
		untried := row(5, claybot.SendWaiting, ahead.Add(4*time.Second))
		untried.Tried, untried.At = 0, claybot.At(ahead)
		_, err := r.db.Enqueue(r.Context(),
			row(1, claybot.SendWaiting, ahead.Add(8*time.Second)), row(2, claybot.SendAmbiguous, time.Time{}),
			row(3, claybot.SendWaiting, ahead.Add(-time.Second)), untried)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.restart()
		after(time.Minute)
		r.wants("text 1", "text 2", "text 3", "text 5")
		// 8 s for the first, then two look-ups up to 10 s after the start of the
		// second, then 4 s.
		var got []time.Duration
		for _, s := range r.chat.sent() {
			got = append(got, s.at.Sub(began))
		}
		want := []time.Duration{8, 18, 18, 22}
		for i := range want {
			if d := got[i] - want[i]*time.Second; d < 0 || d > time.Second {
				t.Errorf("sent after %v, want about %v s", got, want)
				break
			}
		}
	})
}

// A notice whose own send fails as a send is tried again; one whose fate is unknown
// is not, and no notice reports it.
func TestFaultsOfTheNotice(t *testing.T) {
	for _, tt := range []struct {
		name string
		then []verdict // of the sends of the notice
		want []string
	}{
		{"not sent", []verdict{failing, slow(time.Minute, false), failing}, []string{"re: a", "re: a", mayBeMissing}},
		{"lost", []verdict{lost}, []string{"re: a", "re: a", mayBeMissing}},
		{"cut", []verdict{cut}, []string{"re: a", "re: a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = resends
				r.chat.will(append([]verdict{lost, lost}, tt.then...)...)
				r.start()
				r.say("a")
				after(time.Hour)
				r.wants(tt.want...)
				r.say("b")
				after(time.Hour)
				r.wants(append(tt.want, "re: b")...)
			})
		})
	}
}

// A question that may be missing is reported, as its run waits for the answer.
func TestLostQuestionIsToldOf(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = resends
		r.chat.will(cut, cut)
		r.asking(askColour(nil))
		after(time.Hour)
		r.wants(maybeLost)
	})
}
