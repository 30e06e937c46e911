package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// chats names the chats with a new id that the configuration names by a former one. The checks
// that follow use the settings of a chat under its new id as well.
func (d *doctor) chats(ctx context.Context) bool {
	marks, err := sqlite.LookThrough(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", storage.CheckpointMoved)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return d.warn("record-unreadable", "cannot read the new ids of chats: "+reason(err), "")
	}
	d.moves = people.MovesOf(marks)
	d.config.Follow(d.moves)
	for _, x := range d.moves.Renamed(d.config.Chats()) {
		d.warn("chat-renamed", renamedText(x), "change it to "+x.Now)
	}
	return true
}

// stuckAfter is how long a message waits in the outbox until the doctor names it.
const stuckAfter = time.Hour

// outbox reports messages that were not sent for long.
func (d *doctor) outbox(ctx context.Context) bool {
	n, oldest, err := sqlite.LookStuck(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", claybot.At(time.Now().Add(-stuckAfter)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil:
		return d.warn("record-unreadable", "cannot read the outbox: "+reason(err), "")
	case n == 0:
		return d.ok("no message waits for more than an hour")
	}
	next := "start claybot, which sends them"
	if d.holder != "" {
		next = "look why with: claybot outbox --state open"
	}
	return d.warn("outbox-stuck", fmt.Sprintf("%s not sent, the oldest since %s", count(n, "message"), moment(oldest.Time())), next)
}

// routes names the dead routes of a data directory, by the ids that their chats have now.
func (d *doctor) routes(ctx context.Context) bool {
	marks, err := sqlite.LookThrough(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", delivery.DeadPrefix)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return d.warn("record-unreadable", "cannot read the dead routes: "+reason(err), "")
	}
	for _, r := range delivery.DeadRoutesOf(marks, d.moves) {
		d.warn("route-dead", fmt.Sprintf("%s is dead since %s: %s", r, moment(r.Since.Time()), connectors.OneLine(r.Why, 300)),
			"let the bot in again; the route works again when a person writes there, or with: claybot outbox retry <id>")
	}
	return true
}
