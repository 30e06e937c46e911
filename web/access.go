package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Pairing gives access to people who ask for it, or who are invited.
type Pairing interface {
	Pairings(ctx context.Context) ([]storage.Pairing, error)
	// Approve and Deny decide a pairing request by its code. They return
	// storage.ErrNotFound when there is none with that code.
	Approve(ctx context.Context, code string) (storage.Pairing, error)
	Deny(ctx context.Context, code string) error
	// Redeemed returns the newest grant of each connector by an invitation, with its code.
	Redeemed() []storage.Grant
	// Invite returns a link or a code that gives one person access to a connector, once.
	Invite(ctx context.Context, connector string) (Invitation, error)
}

// Grants says who may write to agents.
type Grants interface {
	Grants(ctx context.Context) ([]storage.Grant, error)
	// Allow grants access without a code.
	Allow(ctx context.Context, connector, subject string) error
	// Revoke revokes a grant, and takes the role of its person, also without a grant; it returns
	// storage.ErrNotFound when there is neither. Of a person with a role it is a Problem over the network.
	Revoke(ctx context.Context, connector, subject string) (Revoked, error)
}

// A PairingList lists pairing requests and grants.
type PairingList struct {
	Pairings []PairingView   `json:"pairings" doc:"Pending pairing requests."`
	Grants   []storage.Grant `json:"grants" doc:"Users and channels with access."`
	Redeemed []Redeemed      `json:"redeemed,omitempty" doc:"Pairing links and codes that were used since the start, the newest of each connector. Only for the scope admin."`
}

// A Redeemed is a pairing link or code that a person has used.
type Redeemed struct {
	Code      string `json:"code"`
	Connector string `json:"connector"`
	Subject   string `json:"subject"`
	Name      string `json:"name,omitempty" doc:"As the platform gives it; not verified."`
}

// A PairingView is a pairing request, with its code if the caller may decide it.
type PairingView struct {
	Code      string       `json:"code,omitempty" doc:"Only for the scope admin."`
	Connector string       `json:"connector"`
	ChannelID string       `json:"channelId"`
	UserID    string       `json:"userId"`
	Name      string       `json:"name,omitempty"`
	At        claybot.Time `json:"at"`
	Expires   claybot.Time `json:"expires"`
}

// An Invitation is a link or a code that gives one person access, once.
type Invitation struct {
	Connector string       `json:"connector"`
	URL       string       `json:"url,omitempty" doc:"Opens the chat with the bot; one press there gives access. Telegram alone has such links."`
	Code      string       `json:"code" doc:"Gives access to the person who sends it to the bot in a direct message."`
	Expires   claybot.Time `json:"expires"`
}

// A Decision decides a pairing request by its code, grants access by id, or makes a pairing link.
type Decision struct {
	Code      string `json:"code,omitempty" doc:"The pairing code that claybot sent to the user; with approve."`
	Approve   *bool  `json:"approve,omitempty"`
	Connector string `json:"connector,omitempty" doc:"With subject, instead of code: grants access without a code."`
	Subject   string `json:"subject,omitempty" doc:"The platform's id of a user or a group."`
	Invite    string `json:"invite,omitempty" doc:"Instead of all others: the connector for which to make a link or a code that gives one person access, once, within 15 minutes. It replaces the one before."`
}

// A Decided is the outcome of a decision: the request, or the grant.
type Decided struct {
	*storage.Pairing
	Denied  string `json:"denied,omitempty"`
	Granted string `json:"granted,omitempty" doc:"connector:subject"`
	// Invitation answers invite.
	Invitation *Invitation `json:"invitation,omitempty"`
}

// A Revoked says what is left after a revocation.
type Revoked struct {
	Still string `json:"still" doc:"The setting that still gives access, or the role."`
	Role  bool   `json:"role,omitempty" doc:"The person was not approved: only their role is taken."`
}
