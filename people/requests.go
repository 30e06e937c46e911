package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Pairings lists the open requests of strangers, oldest first.
func (dir *Directory) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	return dir.Gate.pairings(ctx)
}

// Approve lets in the person who was given the code, and tells him so.
func (dir *Directory) Approve(ctx context.Context, code string) (storage.Pairing, error) {
	p, err := dir.Gate.approve(ctx, code)
	if err != nil {
		return p, err
	}
	dir.cfg.Log.Info("pairing approved", "connector", p.Connector, "user", p.UserID)
	route := claybot.Route{Connector: p.Connector, ChannelID: p.ChannelID, UserID: p.UserID}
	_, err = dir.cfg.Sender.Send(ctx, claybot.Outgoing{
		ID: runs.NewID(), Kind: claybot.OutgoingPairing, Route: route, Text: texts.Approved(), Part: 1, Parts: 1, At: claybot.Now(),
	})
	if err != nil {
		return p, fmt.Errorf("notify the user: %w", err)
	}
	return p, nil
}

// Deny removes a request. The person hears nothing.
func (dir *Directory) Deny(ctx context.Context, code string) error {
	p, err := dir.Gate.find(ctx, code)
	if err != nil {
		return err
	}
	return dir.Gate.store.DropPairing(ctx, p.Code)
}

// Grants lists everyone who was let in by an operator.
func (dir *Directory) Grants(ctx context.Context) ([]storage.Grant, error) {
	return dir.Gate.store.Grants(ctx)
}

// Allow lets a person (for direct chats) or a channel (for groups) in by its
// stable id.
func (dir *Directory) Allow(ctx context.Context, connector, id string) error {
	if connector == "" || id == "" {
		return errors.New("allow: want connector and id, for example telegram and 123456")
	}
	return dir.Gate.Grant(ctx, storage.Grant{Connector: connector, Subject: id, At: claybot.Now()})
}

// MayReceive reports whether an outgoing message may still be sent: its
// receiver was not revoked after it was written. Codes go to strangers. A place
// without a person was named by the operator, in a task's file.
func (g *Gate) MayReceive(o claybot.Outgoing) bool {
	if o.Route.UserID == "" {
		return true
	}
	d := claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID)
	return o.Kind == claybot.OutgoingPairing || g.Allowed(d, o.Route.Group)
}
