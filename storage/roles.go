package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// A Role is what a person may do beyond writing to their agents.
type Role string

// The roles. An operator decides about access and budgets in their chats and reads notices; an
// owner may do that as well, and change roles.
const (
	RoleUser     Role = "user" // is never stored
	RoleOperator Role = "operator"
	RoleOwner    Role = "owner"
)

// Roles stores the roles that owners give people, beside those of the configuration.
type Roles interface {
	// Roles lists the identities that have one; only those among who, unless it names none. It
	// returns the number of a change that they include, with all changes before it.
	Roles(ctx context.Context, who ...string) (all []RoleGrant, number int64, err error)
	// SetRole gives a person the role After; RoleUser takes it. The Others lose theirs. The change
	// is kept, in the same transaction, and returned with its Number and its Before: the
	// highest role of all identities. A change that changes nothing is not kept. ErrState, and
	// nothing changes, where no owner would be left of those that there are.
	SetRole(ctx context.Context, c RoleChange) (RoleChange, error)
	// RoleChanges lists the newest changes, latest first.
	RoleChanges(ctx context.Context) ([]RoleChange, error)
}

// A RoleGrant is the role of one identity.
type RoleGrant struct {
	Who  string       `json:"-"` // as OwnerID
	Role Role         `json:"role"`
	At   claybot.Time `json:"at"`
	By   string       `json:"by"`
}

// A RoleChange is a change of a role, by whom and when.
type RoleChange struct {
	At     claybot.Time `json:"at"`
	By     string       `json:"by" doc:"connector/user in a chat, the user of the system on the command line, or what took the role."`
	Who    string       `json:"who" doc:"connector/user"`
	Before Role         `json:"before"`
	After  Role         `json:"after"`
	// Number orders the changes of a store: a later one has a larger number. The store sets it.
	Number int64 `json:"-"`
	// Others are the other identities of the person.
	Others []string `json:"-"`
	// Last allows to take the role of the last owner.
	Last bool `json:"-"`
	// Counts reports whether an owner counts as one; nil: all do. It is called in the transaction.
	Counts func(who string) bool `json:"-"`
}

// ErasedPerson is named instead of a person whom Eraser erased.
const ErasedPerson = "an erased person"

// MaxRoleChanges is how many changes are kept, the newest.
const MaxRoleChanges = 1000

const (
	// CheckpointRoles is the prefix of the keys of checkpoints with the roles of people, by
	// connector/userId. Members keep them in memory; Version.Access counts their changes.
	CheckpointRoles = "role/"
	// CheckpointRoleChanges is the prefix of those with the changes of roles, by their number.
	CheckpointRoleChanges = "role change/"
)
