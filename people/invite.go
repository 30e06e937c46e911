package people

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// Invited returns the invitation of a connector that is open, and whether there is one.
func (g *Gate) Invited(ctx context.Context, connector string) (storage.Pairing, bool, error) {
	all, err := g.open(ctx)
	for _, p := range all {
		if invites(p) && p.Connector == connector {
			return p, true, nil
		}
	}
	return storage.Pairing{}, false, err
}

// Redeem gives access to the unknown user who sent the code of an invitation in a direct chat, by
// the command start or as a message of its own, and returns the notice to them as stored; admitted is false for any other message. One commit
// uses up the code and stores the access with its notice.
func (dir *Directory) Redeem(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (out []claybot.Outgoing, admitted bool, err error) {
	code := codeIn(m)
	if code == "" || m.Context.Group || m.From.Bot || m.From.Outsider || !m.FirstHand || d.UserID == "" {
		return nil, false, nil
	}
	if found, err := dir.Gate.invited(ctx, d.Connector, code); err != nil || !found {
		return nil, false, err
	}
	p := storage.Pairing{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID, Name: m.From.Name, At: claybot.Now()}
	grant, notice := dir.approved(ctx, p)
	grant.Invitation = code
	out, err = dir.grant(ctx, grant, notice)
	switch {
	case errors.Is(err, storage.ErrNotFound): // another user was faster
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	dir.Gate.redeem(grant)
	dir.cfg.Log.Info("access granted by a pairing link", "connector", p.Connector, "user", p.UserID)
	return out, true, nil
}

// codeIn returns what may be the code of an invitation in a message; empty for none. Where a
// platform has no links, people copy the code, maybe with marks of its form around it.
func codeIn(m claybot.AgentMessage) string {
	switch {
	case m.Type == claybot.MessageCommand && m.Command == startCommand, m.Type == claybot.MessageUser && len(m.Files) == 0:
		return strings.ToUpper(strings.Trim(m.Text, " \t\r\n`*"))
	}
	return ""
}

// redeem notes who used an invitation.
func (g *Gate) redeem(x storage.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.redeemed[x.Connector] = x
}

// Redeemed returns the newest grant of each connector by an invitation, with its code. It knows
// those of this process alone.
func (g *Gate) Redeemed() (all []storage.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, connector := range slices.Sorted(maps.Keys(g.redeemed)) {
		all = append(all, g.redeemed[connector])
	}
	return all
}

// invited reports whether a connector has an open invitation with this code. Wrong codes lock
// nothing: unknown users could lock all links, and do not guess 80 bits. One costs a read of a few
// rows; the parameters of other links to a bot rarely have the length of a code, and cost none.
func (g *Gate) invited(ctx context.Context, connector, code string) (bool, error) {
	if len(code) != invitationCodes*codeLength {
		return false, nil
	}
	all, err := g.open(ctx)
	return slices.ContainsFunc(all, func(p storage.Pairing) bool {
		return invites(p) && p.Connector == connector && subtle.ConstantTimeCompare([]byte(p.Code), []byte(code)) == 1
	}), err
}
