package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Pairings lists the open requests of unknown users, oldest first.
func (dir *Directory) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	return dir.Gate.pairings(ctx)
}

// Approve gives access to the person who holds the code, and notifies them.
func (dir *Directory) Approve(ctx context.Context, code string) (storage.Pairing, error) {
	p, grant, notice, err := dir.Approval(ctx, code)
	if err != nil {
		return p, err
	}
	out, err := dir.grant(ctx, grant, notice)
	if err != nil {
		return p, err
	}
	dir.NoteApproved(ctx, grant)
	dir.cfg.Log.Info("pairing approved", "connector", p.Connector, "user", p.UserID)
	dir.cfg.Sender.Hand(out)
	return p, nil
}

// Approval returns what the approval of the request with a code stores: the grant, and the notice
// to its person, which a request has once. It stores nothing, but it counts a wrong code.
func (dir *Directory) Approval(ctx context.Context, code string) (storage.Pairing, storage.Grant, claybot.Outgoing, error) {
	p, err := dir.Gate.find(ctx, code)
	if err != nil {
		return storage.Pairing{}, storage.Grant{}, claybot.Outgoing{}, err
	}
	grant, notice := dir.approved(ctx, p)
	return p, grant, notice, nil
}

// approved returns the grant for the person of a request, and the notice to them.
func (dir *Directory) approved(ctx context.Context, p storage.Pairing) (storage.Grant, claybot.Outgoing) {
	d := claybot.User(p.Connector, p.ChannelID, p.UserID)
	notice := claybot.Outgoing{
		ID: fmt.Sprintf("approved/%s/%s/%d", p.Connector, p.UserID, p.At), Kind: claybot.OutgoingPairing, Route: d.Route(),
		Text: dir.VoiceAt(ctx, d, d.Route()).Approved(), Part: 1, Parts: 1, At: claybot.Now(),
	}
	return storage.Grant{Connector: p.Connector, Subject: p.UserID, Name: p.Name, At: claybot.Now(), Anew: true}, notice
}

// Deny removes a request without a notice to the person.
func (dir *Directory) Deny(ctx context.Context, code string) error {
	_, err := dir.Refuse(ctx, code, VerdictDenied)
	return err
}

// Grants lists the grants of operators, with the present names of people and channels.
func (dir *Directory) Grants(ctx context.Context) ([]storage.Grant, error) {
	all, err := dir.StoredGrants(ctx)
	for i, g := range all {
		all[i].Name = cmp.Or(dir.NameOf(ctx, g.Connector+"/"+g.Subject), g.Name)
	}
	return all, err
}

// StoredGrants lists the grants of operators, with the names that they were stored with.
func (dir *Directory) StoredGrants(ctx context.Context) ([]storage.Grant, error) {
	return dir.Gate.store.Grants(ctx)
}

// ByID returns a grant of access by an id. A role from an earlier access does not come back with it.
func (dir *Directory) ByID(connector, id string) storage.Grant {
	return storage.Grant{Connector: connector, Subject: id, At: claybot.Now(), Anew: !dir.Knows(connector, id)}
}

// Allow gives access to a person (for direct chats) or a channel (for groups) by its
// stable id.
func (dir *Directory) Allow(ctx context.Context, connector, id string) error {
	if connector == "" || id == "" {
		return errors.New("allow: want connector and id, for example telegram and 123456")
	}
	grant := dir.ByID(connector, id)
	err := dir.Gate.Grant(ctx, grant)
	if err == nil {
		dir.NoteApproved(ctx, grant)
	}
	return err
}

// MayReceive reports whether an outgoing message may still be sent: its receiver has not
// lost access since it was written. Pairing codes go to unknown users. A route without a
// person comes from the operator, in a task's file.
func (g *Gate) MayReceive(o claybot.Outgoing) bool {
	if o.Route.UserID == "" {
		return true
	}
	d := claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID)
	return o.Kind == claybot.OutgoingPairing || g.Allowed(d, o.Route.Group)
}
