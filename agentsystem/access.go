package agentsystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Pairings lists the open requests of strangers, oldest first.
func (s *AgentSystem) Pairings(ctx context.Context) ([]storage.Pairing, error) {
	return s.gate.pairings(ctx)
}

// Approve lets in the person who was given the code, and tells him so.
func (s *AgentSystem) Approve(ctx context.Context, code string) (storage.Pairing, error) {
	p, err := s.gate.approve(ctx, code)
	if err != nil {
		return p, err
	}
	s.Log.Info("pairing approved", "connector", p.Connector, "user", p.UserID)
	route := claybot.Route{Connector: p.Connector, ChannelID: p.ChannelID, UserID: p.UserID}
	_, err = s.deliverer.Send(ctx, claybot.Outgoing{
		ID: runs.NewID(), Kind: claybot.OutgoingPairing, Route: route, Text: texts.Approved(), Part: 1, Parts: 1, At: claybot.Now(),
	})
	if err != nil {
		return p, fmt.Errorf("notify the user: %w", err)
	}
	return p, nil
}

// Deny removes a request. The person hears nothing.
func (s *AgentSystem) Deny(ctx context.Context, code string) error {
	p, err := s.gate.find(ctx, code)
	if err != nil {
		return err
	}
	return s.Config.Access.DropPairing(ctx, p.Code)
}

// Grants lists everyone who was let in by an operator.
func (s *AgentSystem) Grants(ctx context.Context) ([]storage.Grant, error) {
	return s.Config.Access.Grants(ctx)
}

// Allow lets a person (for direct chats) or a channel (for groups) in by its
// stable id.
func (s *AgentSystem) Allow(ctx context.Context, connector, id string) error {
	if connector == "" || id == "" {
		return errors.New("allow: want connector and id, for example telegram and 123456")
	}
	return s.gate.grant(ctx, storage.Grant{Connector: connector, Subject: id, At: claybot.Now()})
}

// Revoke takes a grant back: waiting messages are dropped, the runs of the
// person and of his helpers end, his tasks do not run, and nothing more is sent
// there.
func (s *AgentSystem) Revoke(ctx context.Context, connector, id string) error {
	if err := s.gate.revoke(ctx, connector, id); err != nil {
		return err
	}
	if err := s.revokeParked(ctx, connector); err != nil {
		return err
	}
	for e, err := range s.Index.IndexedAgents(ctx) {
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		d := e.Descriptor
		if d.Type == claybot.AgentCron && d.Owner == connector+"/"+id {
			s.stop(ctx, e, "owner")
			s.stopBelow(ctx, e.ID, "parent")
			continue
		}
		if d.Connector != connector || d.UserID != id && d.ChannelID != id {
			continue
		}
		if d.ChannelID != id && s.gate.knows(connector, d.ChannelID) {
			continue // he writes there as a member of a group that may
		}
		dropped, err := s.Inbox.Drop(ctx, e.ID, skippedRevoked)
		if err != nil {
			return fmt.Errorf("drop messages of %s: %w", e.ID, err)
		}
		s.reject(e.ID, ErrDropped, dropped...)
		s.stop(ctx, e, operatorName)
		s.stopBelow(ctx, e.ID, "parent")
	}
	return nil
}

// revokeParked ends the parked messages of a connector whose senders have no access any
// more, whether their agents can be used or not.
func (s *AgentSystem) revokeParked(ctx context.Context, connector string) error {
	agents, err := s.Parking.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return err
	}
	for _, a := range agents {
		_, err := s.dropParked(ctx, a.Key, skippedRevoked, func(p storage.Parked) bool {
			return p.To.Connector == connector && !s.gate.allowed(p.To, p.Message.Context.Group)
		})
		if err != nil {
			return fmt.Errorf("drop parked messages: %w", err)
		}
	}
	return nil
}

// mayReceive reports whether an outgoing message may still be sent: its
// receiver was not revoked after it was written. Codes go to strangers. A place
// without a person was named by the operator, in a task's file.
func (s *AgentSystem) mayReceive(o claybot.Outgoing) bool {
	if o.Route.UserID == "" {
		return true
	}
	d := claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID)
	return o.Kind == claybot.OutgoingPairing || s.gate.allowed(d, o.Route.Group)
}
