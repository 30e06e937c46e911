package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

const (
	// stillAfter is how long a person sees nothing new until a sign of life.
	stillAfter = 15 * time.Second
	// stillPrefix begins the id of a draft that was made for a sign, so that a
	// later pass recognizes it.
	stillPrefix = "still/"
)

// A still is the sign of life of a live: a short text that says what the run
// waits for, where a person waits and the platform shows nothing else. It is a
// draft like the growing answer, which takes its place, so a run makes at most
// one message for it. The loop of the live owns it, except for tool.
type still struct {
	on    bool
	timer *time.Timer
	said  string // the sign that the reader sees; empty for none
	tool  string // that is running; empty for the model. live.mu guards it
}

// waits decides whether the live shows a sign of life: c shows neither that an
// answer is being written (Typer) nor the answer itself before it is a message
// (Previewer), and can edit the sign away (Streamer).
func (l *live) waits(c connectors.Connector) {
	_, edits := c.(connectors.Streamer)
	l.still.on = edits && l.typer == nil && l.preview == nil && l.sender != nil && l.p.work().Person()
	l.still.timer = time.NewTimer(stillAfter)
}

// works notes what the run waits for: the end of a tool, or the model when tool
// is empty.
func (l *live) works(tool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.still.tool = tool
}

// stillWorking shows the sign of life, or corrects it.
func (l *live) stillWorking(ctx context.Context) {
	l.still.timer.Reset(stillAfter)
	l.mu.Lock()
	sign := texts.StillWorking(l.still.tool)
	l.mu.Unlock()
	switch {
	case !l.still.on || sign == l.still.said:
		return
	case l.p.profile.Progress: // there are no drafts
		l.still.on = !l.stillNotice(ctx, sign)
		return
	case l.stream.Off || l.current != nil && l.sent == "" && l.still.said == "":
		return // an earlier pass has shown something, which is left as it is
	}
	before := l.sent
	whole := strings.TrimSpace(before + "\n\n" + sign)
	l.fresh = fmt.Sprintf("%s%s/1", stillPrefix, l.p.run.ID)
	err := l.send(ctx, whole)
	l.fresh = ""
	if err != nil && ctx.Err() == nil {
		l.p.log.Debug("failed to send a progress notice", "err", err)
	}
	if l.sent == whole {
		l.sent, l.still.said = before, sign
	}
}

// stillNotice says the sign in a message of its own, once for each run, and
// reports whether it is stored.
func (l *live) stillNotice(ctx context.Context, sign string) bool {
	o := claybot.Outgoing{
		ID: fmt.Sprintf("%s%s/1", stillPrefix, l.p.run.ID), Kind: claybot.OutgoingNotice, Run: l.p.run.ID, Agent: l.p.agent.ID,
		Message: l.p.AtWork.Of(l.p.run.ID).Newest().ID, Route: l.route, Text: sign, Part: 1, Parts: 1, At: claybot.Now(),
	}
	_, err := l.p.Deliverer.Send(ctx, o)
	if err != nil {
		l.p.log.Debug("failed to update a progress notice", "err", err)
	}
	return err == nil
}

// leftover is the text with which a draft ends that shows a sign of life when
// the run has nothing more to say: what was there before the sign, or, where
// the sign stands alone, word. It is empty when no sign is visible. Only after
// close.
func (l *live) leftover(word string) string {
	d := l.current
	switch {
	case d == nil || l.still.said == "" && !(l.sent == "" && strings.HasPrefix(d.Outgoing, stillPrefix)):
		return ""
	case l.sent != "":
		return l.sent
	}
	return word
}
