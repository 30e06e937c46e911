package people

import (
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Operator names an operator who is not a user of a chat platform.
const Operator = "operator"

// terminal is the connector of the terminal, which reaches claybot by the socket of the machine alone.
const terminal = "terminal"

// OperatorConsoles are the chats that only an operator can open, as "connector/userId".
var OperatorConsoles = []string{"web/" + Operator, terminal + "/" + Operator}

// OrdersRoles reports whether an owner may change roles in the chats of a connector: in those of chat
// platforms and in the terminal. The page and the API are open to a login or a token over the network.
func (dir *Directory) OrdersRoles(connector string) bool {
	return connector == terminal || !slices.Contains(dir.Gate.access().Trusted, connector)
}

// IsOperator reports whether a person, "connector/userId", is an operator or an owner by any of
// their identities: on the page and the command line, by the settings, or by a role.
func (dir *Directory) IsOperator(owner string) bool {
	return dir.RoleOfPerson(owner) != storage.RoleUser
}

// operators returns all operators, as "connector/userId".
func (dir *Directory) operators() []string {
	return append(slices.Clone(OperatorConsoles), dir.Operators()...)
}

// NotifyOperators sends a notice to each operator who has a conversation, once for each key.
func (dir *Directory) NotifyOperators(ctx context.Context, key string, say func(texts.Voice) string) error {
	var errs []error
	for _, owner := range dir.operators() {
		if err := dir.Notify(ctx, owner, key+"/"+owner, say); !errors.Is(err, storage.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// TellOperators sends a notice to each operator in a conversation which they alone read, on
// a connector that works, once for each key. It leaves out operators without one and, unless
// knows is nil, those who know already in their conversation, and returns how many there are with one.
func (dir *Directory) TellOperators(ctx context.Context, key string, knows func(storage.IndexEntry, claybot.Route) bool, say func(texts.Voice) string) (count int, err error) {
	var errs []error
	told := make(map[claybot.AgentID]bool)
	for _, owner := range dir.operators() {
		e, to, err := dir.operator(ctx, owner)
		if err != nil || to.Connector == "" || told[e.ID] {
			errs = append(errs, err)
			continue
		}
		if told[e.ID] = true; knows != nil && knows(e, to) {
			continue
		}
		errs = append(errs, dir.notifyOn(ctx, e, to, key+"/"+string(e.ID), say))
	}
	return len(told), errors.Join(errs...)
}

// operator returns the conversation in which an operator reads notices, as private does. An
// operator who has only ever sent commands has no other than that of the commands.
func (dir *Directory) operator(ctx context.Context, owner string) (e storage.IndexEntry, to claybot.Route, err error) {
	e, to, err = dir.private(ctx, owner, "")
	if err != nil || to.Connector != "" {
		return e, to, err
	}
	return dir.firstPrivate(ctx, func(yield func(storage.IndexEntry, error) bool) {
		for _, id := range dir.Identities(owner) {
			page, err := dir.cfg.Index.AgentPage(ctx, storage.AgentQuery{Owner: id, Type: claybot.AgentUser})
			if err != nil {
				yield(storage.IndexEntry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
		}
	}, owner, "")
}

// operatedBy reports whether the person of an agent is an operator: on the web page
// or in the terminal of the daemon, by the setting operators, or by a role.
func (dir *Directory) operatedBy(a claybot.Agent) bool {
	owner := a.Descriptor.OwnerID()
	if !a.Descriptor.Foreground() || owner == "" {
		return false
	}
	return dir.IsOperator(owner)
}

// ReadsCauses reports whether the answer to m may contain error causes: its only reader is
// an operator.
func (dir *Directory) ReadsCauses(a claybot.Agent, m claybot.AgentMessage) bool {
	return !m.Context.Group && dir.operatedBy(a)
}
