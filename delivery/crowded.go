package delivery

import (
	"context"
	"strings"

	"github.com/claybot/claybot"
)

// ProgressPrefix begins the ids of texts that a run says before its end, each a message of its
// own; the rest is up to the caller.
const ProgressPrefix = "progress/"

// maxWaiting is how many messages may wait behind a progress text.
const maxWaiting = 300

// crowded reports whether a message is a progress text that makes room, because too many
// messages wait behind it: those that were said first are left out first.
func (x *delivery) crowded(ctx context.Context) bool {
	if !strings.HasPrefix(x.o.ID, ProgressPrefix) || x.o.State == claybot.SendAmbiguous {
		return false
	}
	waiting, err := x.cfg.Reader.Unsent(ctx, x.o.Route.Dest(), x.o.N, maxWaiting)
	return err == nil && len(waiting) == maxWaiting
}
