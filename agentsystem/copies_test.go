package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

const (
	maybeLost    = "One of my last replies may be missing: the connection broke while I was sending it."
	mayBeMissing = maybeLost + " /resend sends it again."
)

// copies counts the visible posts of each outgoing message.
func (r *rig) copies() map[string]int {
	r.chat.mu.Lock()
	defer r.chat.mu.Unlock()
	n := make(map[string]int)
	for _, p := range r.chat.posts {
		if !p.gone {
			n[p.out.ID]++
		}
	}
	return n
}

// A platform that takes every message and loses every response shows two copies
// of each and one notice (finding R2: it was ten and ten).
func TestEveryResponseLost(t *testing.T) {
	lines := map[string]func(*line) connectors.Connector{
		"resends":        func(l *line) connectors.Connector { return resendingLine{l, true} },
		"notice only":    func(l *line) connectors.Connector { return resendingLine{l, false} },
		"streams":        streams,
		"looks up, late": func(l *line) connectors.Connector { return lateLine{l, time.Hour} },
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.grow(line, half1+half2)
				r.chat.judge = func(o claybot.Outgoing) verdict {
					if o.Edit != "" {
						return failing
					}
					return lost
				}
				r.start()
				r.say("begin")
				after(2 * time.Hour)
				for id, n := range r.copies() {
					most := 2
					if strings.HasPrefix(id, "undelivered/") {
						most = 1
					}
					if n > most {
						t.Errorf("%s is visible %d times, want at most %d", id, n, most)
					}
				}
				o := r.reply("begin")
				if o.State != claybot.SendFailed || r.copies()["undelivered/"+o.ID] != 1 {
					t.Errorf("people see %q; the reply: %+v", r.chat.seen(), o)
				}
			})
		})
	}
}

// Six kills, each in the middle of a send that arrives, leave two copies and one
// notice (finding R2: it was seven copies).
func TestKilledInEverySend(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = func(l *line) connectors.Connector { return resendingLine{l, true} }
		kills := 0
		r.chat.judge = func(claybot.Outgoing) verdict {
			if kills++; kills > 6 {
				return verdict{}
			}
			r.fuse.blow()
			return lost
		}
		r.start()
		r.say("a")
		for range 8 {
			after(10 * time.Minute)
			if r.fuse.dead() {
				r.crash()
				r.start()
			}
		}
		if got := r.chat.seen(); len(got) != 3 || got[0] != "re: a" || got[1] != "re: a" || got[2] != mayBeMissing {
			t.Errorf("people see %q", got)
		}
	})
}

// A late line looks up in a history that shows a post only after a while.
type lateLine struct {
	*line
	late time.Duration
}

func (l lateLine) Find(ctx context.Context, o claybot.Outgoing) (string, bool, error) {
	l.chat.mu.Lock()
	defer l.chat.mu.Unlock()
	for _, p := range l.chat.posts {
		if p.out.ID == o.ID && !p.gone && time.Since(p.at) >= l.late {
			return p.id, true, nil
		}
	}
	return "", false, nil
}
