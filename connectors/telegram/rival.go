package telegram

import (
	"slices"
	"time"
)

// A rival is another program that polls with the same bot token. Telegram ends the long poll of
// either as soon as the other begins one, and answers the polls between, so that both get a part
// of the messages and both see polls that succeed: only the number of refused polls within
// rivalMemory shows it. The zero value is none.
type rival struct {
	refused  []time.Time // polls within rivalMemory
	reported bool
}

const (
	// rivalMemory is how long a refused poll counts. Two claybots end each other's polls about
	// every 7 s; other programs wait up to 30 s after a refused poll.
	rivalMemory = 45 * time.Second
	// rivalPolls is the number of refused polls that show a rival. A previous process that ends
	// causes fewer.
	rivalPolls = 3

	rivalFix  = "stop it, or create a bot of your own with @BotFather"
	rivalSays = "telegram: another program polls with the same bot token (409), perhaps a second claybot, and gets a part of the messages; " + rivalFix
)

// met records a poll that a rival ended, and reports whether it is one to report.
func (r *rival) met(now time.Time) bool {
	r.forget(now)
	r.refused = append(r.refused, now)
	r.reported = r.reported || len(r.refused) >= rivalPolls
	return r.reported
}

// gone reports whether no rival is to be reported any more.
func (r *rival) gone(now time.Time) bool {
	r.forget(now)
	r.reported = r.reported && len(r.refused) > 0
	return !r.reported
}

func (r *rival) forget(now time.Time) {
	r.refused = slices.DeleteFunc(r.refused, func(t time.Time) bool { return now.Sub(t) >= rivalMemory })
}

// worked records a successful poll. While another program polls, too, it is no recovery.
func (l *loop) worked() {
	known := l.rival.reported
	if !l.rival.gone(time.Now()) {
		l.pulse.Fail(rivalSays)
		return
	}
	if known {
		l.log.Info("no other program polls with the bot token any more")
	}
	l.pulse.OK()
}
