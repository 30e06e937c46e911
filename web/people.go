package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// Directory lists the people whom claybot knows, without what they wrote.
type Directory interface {
	// ListPeople lists people, owners and operators first; more is how many it left out.
	ListPeople(ctx context.Context) (all []overview.Person, more int, err error)
	// PersonOf returns the person with an identity (OwnerID), or storage.ErrNotFound.
	PersonOf(ctx context.Context, owner string) (overview.Person, error)
	// SetRole gives a person (OwnerID) a role; a Refusal says why it cannot.
	SetRole(ctx context.Context, owner string, role storage.Role, by string) (storage.RoleChange, error)
	// RoleChanges lists the newest changes of roles, latest first.
	RoleChanges(ctx context.Context) ([]storage.RoleChange, error)
}

// A RoleOrder gives a person a role.
type RoleOrder struct {
	Role storage.Role `json:"role" doc:"owner, operator or user."`
	By   string       `json:"by,omitempty" doc:"Who orders it, for the list of changes."`
}

// A RoleList lists changes of roles.
type RoleList struct {
	Changes []storage.RoleChange `json:"changes" doc:"The newest 1,000, latest first."`
}

// A PersonList lists people.
type PersonList struct {
	People []overview.Person `json:"people" doc:"Owners and operators first, then by their last message, the latest first."`
	More   int               `json:"more,omitempty" doc:"How many others there are, who are not listed."`
}

// People erases what claybot keeps of a person.
type People interface {
	// Kept says what claybot keeps of a person (OwnerID) and all their identities. It changes
	// nothing.
	Kept(ctx context.Context, owner string) (PersonData, error)
	// Forget erases that, and says what it was. A Refusal if the person has unfinished work.
	// After a crash in between, the next call goes on. Workspaces on the machines of other
	// members make it a Refusal, unless they are to be skipped: then Stays names them.
	Forget(ctx context.Context, owner string, skipWorkspaces bool) (PersonData, error)
}

// PersonData is what claybot keeps of a person, or erased.
type PersonData struct {
	Person     []string           `json:"person" doc:"All identities of the person, as connector/user."`
	Known      *overview.Person   `json:"known,omitempty" doc:"What claybot knows of the person now; null: nothing, or they were erased."`
	Erased     bool               `json:"erased" doc:"The counts are of what was erased; otherwise, of what would be."`
	Agents     []claybot.AgentID  `json:"agents" doc:"With their histories and files, and those that were deleted earlier."`
	Grants     int                `json:"grants" doc:"Access that was granted by code or by ID."`
	Tasks      int                `json:"tasks" doc:"Scheduled tasks, and those that are over."`
	Workspaces int                `json:"workspaces"`
	Rows       storage.Erased     `json:"rows"`
	Unfinished storage.Unfinished `json:"unfinished" doc:"What must end first."`
	Stays      []string           `json:"stays" doc:"What stays, in sentences."`
}
