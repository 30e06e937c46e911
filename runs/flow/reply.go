package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// reply sends a text. One that holds what not everybody may read goes to other readers than those of the run
// only if those approve whose that is.
func (v *visit) reply(ctx context.Context, spec *flows.Reply) (out Result, next string, err error) {
	text, taint, err := v.text(spec.Text, nil)
	if err != nil {
		return out, "", err
	}
	if strings.TrimSpace(text) == "" || runs.IsNoReply(text) {
		return v.put("", mark{}), v.node.Next, nil
	}
	to := spec.To
	if len(to) == 0 {
		to = []string{"trigger"}
	}
	routes := make([]claybot.Route, len(to))
	for i, place := range to {
		routes[i] = v.state.Turn.Route()
		if place != "trigger" {
			if routes[i], err = v.cfg.Route(place); err != nil {
				return out, "", &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("%s: %v", v.node.Name, err)}
			}
		}
	}
	if taint.private {
		if err := v.shared(ctx, to, routes, text); err != nil {
			return out, "", err
		}
	}
	before, known, err := v.sentBefore(ctx)
	if err != nil {
		return out, "", err
	}
	for i, route := range routes {
		if route.Connector == "" || slices.Contains(before, route.Dest()) {
			continue // the trigger has no place, or the run that is replayed sent it there
		}
		if !known {
			return out, "", v.failed(CodeUnknown, "the run %s ended in this node, and which chats it wrote to is not kept any more; it is not sent again", v.past.run)
		}
		if err := v.cfg.Send(ctx, v.state.Turn, route, v.id(fmt.Sprint(i)), text); err != nil {
			return out, "", err
		}
	}
	return v.put(text, taint), v.node.Next, nil
}

// mostRoutes is to how many chats of a reply an earlier version of a flow may have sent.
const mostRoutes = 50

// sentBefore are the destinations to which the run that is replayed sent the reply, although it did not end
// the visit: it was stopped in between, or one of them failed. known is false where there may be others, as
// what was sent is not kept for so long.
func (v *visit) sentBefore(ctx context.Context) (all []string, known bool, err error) {
	if v.past == nil || v.cfg.Sent == nil || !v.past.entered(v.flow.Start, v.node.Name, v.number) {
		return nil, true, nil
	}
	for i := range mostRoutes {
		to, err := v.cfg.Sent(ctx, v.past.run, v.id(fmt.Sprint(i)))
		if err != nil {
			return nil, false, err
		}
		if to != nil {
			all = append(all, to.Dest())
		}
	}
	kept := time.Duration(0)
	if v.cfg.Kept != nil {
		kept = v.cfg.Kept()
	}
	return all, kept == 0 || v.cfg.Now().Sub(v.past.came().Time()) < kept, nil
}

// maxShared is how much of a text the question shows that asks whether it may be sent.
const maxShared = 1200 // characters

// shared has the owners of what a text holds approve that it goes to other readers. The chat of the
// trigger has those of the run.
func (v *visit) shared(ctx context.Context, to []string, routes []claybot.Route, text string) error {
	var qs []claybot.Question
	t := v.state.Turn
	if v.cfg.Discloses == nil || t.Agent.Descriptor.OwnerID() == v.flow.Owner && !start(t).Agent {
		return nil // the file of the person says where it goes
	}
	for i, route := range routes {
		if to[i] == "trigger" {
			continue
		}
		d := v.cfg.Discloses(ctx, t, route)
		switch {
		case d == nil:
			continue
		case len(d.Owners) == 0 || slices.Contains(d.Owners, "") || d.Program:
			return v.failed(CodeDenied, "%s, and the person whose that is cannot be asked", d.Text)
		}
		sum := sha256.Sum256([]byte(to[i] + "\x00" + text))
		for _, owner := range t.Speakers(d.Owners) {
			qs = append(qs, claybot.Question{
				Key: v.node.Name, Type: claybot.QuestionConfirm, Text: texts.Of(ctx).ApproveReply(v.flow.Name, d.Text, text, maxShared), Required: true, Once: true,
				Approvers: []string{owner}, Digest: hex.EncodeToString(sum[:]), Expires: claybot.At(v.cfg.Now().Add(flows.DefaultExpires)),
			})
		}
	}
	if len(qs) == 0 {
		return nil
	}
	answers, wait, err := t.Ask(ctx, "flow/"+v.id("share"), qs)
	switch {
	case err != nil && ctx.Err() != nil:
		return runs.Ended(ctx)
	case errors.Is(err, runs.ErrNobody):
		return v.failed(CodeDenied, "the person whose text it is cannot be asked")
	case err != nil:
		return err
	case wait != nil:
		return &runs.WaitError{Awaiting: *wait}
	}
	if slices.ContainsFunc(answers, func(a claybot.Answer) bool { return !tools.Approved(a) }) {
		return v.failed(CodeDenied, "the text holds what others may not read, and was not approved")
	}
	return nil
}
