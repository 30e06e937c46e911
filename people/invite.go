package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// InvitationValid is how long the code of an invitation gives access.
	InvitationValid = 15 * time.Minute
	// invitationCodes is how many pairing codes make up the code of an invitation: 80 bits,
	// because unknown users may try codes themselves.
	invitationCodes = 2
	// startCommand is the command with which a link of a platform brings a code.
	startCommand = "start"
)

// invites reports whether a stored request is an invitation: it waits for any person.
func invites(p storage.Pairing) bool { return p.UserID == "" }

// Invite returns a code that gives one person access to a connector, once, within
// InvitationValid. It replaces the invitation before.
func (g *Gate) Invite(ctx context.Context, connector string) (storage.Pairing, error) {
	now := time.Now()
	p := storage.Pairing{Connector: connector, At: claybot.At(now), Expires: claybot.At(now.Add(InvitationValid))}
	for range invitationCodes {
		p.Code += newCode()
	}
	if _, err := g.store.SavePairing(ctx, p); err != nil {
		return p, fmt.Errorf("save an invitation: %w", err)
	}
	return p, nil
}

// Redeem gives access to the unknown user who sent the code of an invitation in a direct chat,
// and returns the notice to them as stored; admitted is false for any other message. The code is
// used up before access is stored: after a crash in between, the user is one without a code.
func (dir *Directory) Redeem(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (out []claybot.Outgoing, admitted bool, err error) {
	code := strings.TrimSpace(m.Text)
	asks := m.Type == claybot.MessageCommand && m.Command == startCommand && code != ""
	if !asks || m.Context.Group || m.From.Bot || m.From.Outsider || !m.FirstHand || d.UserID == "" {
		return nil, false, nil
	}
	switch ok, err := dir.Gate.spend(ctx, d.Connector, code); {
	case err != nil:
		return nil, false, err
	case !ok:
		return nil, false, nil
	}
	p := storage.Pairing{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID, Name: m.From.Name, At: claybot.Now()}
	grant, notice := dir.approved(ctx, p)
	if out, err = dir.grant(ctx, grant, notice); err != nil {
		return nil, false, err
	}
	dir.cfg.Log.Info("access granted by a pairing link", "connector", p.Connector, "user", p.UserID)
	return out, true, nil
}

// spend uses up the code of the invitation of a connector, and reports whether it was that. Wrong
// codes count, apart from those of operators: unknown users must not keep them from approving.
func (g *Gate) spend(ctx context.Context, connector, code string) (bool, error) {
	if g.locks(&g.links) {
		return false, nil
	}
	all, err := g.open(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if !invites(p) || p.Connector != connector || p.Code != code {
			continue
		}
		err := g.store.DropPairing(ctx, p.Code)
		if errors.Is(err, storage.ErrNotFound) { // another person was faster
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("use up an invitation: %w", err)
		}
		return true, nil
	}
	g.countWrong(&g.links, time.Now())
	return false, nil
}
