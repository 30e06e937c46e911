package delivery

import (
	"context"
	"fmt"
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
	if x.o.Part > 1 { // a text is left out as a whole, or not at all
		first, err := x.cfg.Reader.OutgoingByID(ctx, strings.TrimSuffix(x.o.ID, fmt.Sprint("/", x.o.Part))+"/1")
		return err == nil && first.State == claybot.SendFailed && first.Cause == CauseCrowded
	}
	waiting, err := x.cfg.Reader.Unsent(ctx, x.o.Route.Dest(), x.o.N, maxWaiting)
	return err == nil && len(waiting) == maxWaiting
}
