package overview_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// roles is a name for the field of what has a method Roles.
type roles = storage.Roles

// A crowd is a store in which many people wrote, each to one agent. The agent gone is deleted after
// it was listed.
type crowd struct {
	overview.Index
	storage.Access
	roles
	storage.CheckpointSet
	agents []storage.IndexEntry
	gone   claybot.AgentID
	named  map[string]bool // whose checkpoints were read
}

func (c *crowd) AgentPage(_ context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error) {
	from := 0
	if q.After != "" {
		if q.After == c.gone {
			return nil, storage.ErrNotFound
		}
		from = slices.IndexFunc(c.agents, func(e storage.IndexEntry) bool { return e.ID == q.After }) + 1
	}
	return c.agents[from:min(from+q.Limit, len(c.agents))], nil
}

func (c *crowd) Grants(context.Context) ([]storage.Grant, error)     { return nil, nil }
func (c *crowd) Pairings(context.Context) ([]storage.Pairing, error) { return nil, nil }

func (c *crowd) Checkpoint(_ context.Context, key string) (string, error) {
	if _, id, person := strings.Cut(key, "telegram/"); person {
		c.named[id] = true
	}
	return "", nil
}

// The directory lists the first thousand people with what they used, however many others there are. It
// reads no names of those whom it leaves out, and an agent that is deleted meanwhile ends nothing.
func TestManyPeople(t *testing.T) {
	const all, listed = 1700, 1000
	c := &crowd{named: make(map[string]bool)}
	for i := range all {
		id := claybot.AgentID(fmt.Sprintf("a%04d", i))
		c.agents = append(c.agents, storage.IndexEntry{ID: id, Descriptor: claybot.User("telegram", fmt.Sprint(i+1), fmt.Sprint(i+1)), LastUserAt: claybot.Time(all - i)})
	}
	c.gone = c.agents[499].ID // the last one of the first page
	access := func() people.Access { return people.Access{Mode: people.AccessOpen} }
	dir := people.New(people.Config{
		Gate: people.NewGate(c, c, access, nil), Marks: c, Connector: func(string) connectors.Connector { return nil },
	})
	o := &overview.Listings{Config: overview.Config{Stores: overview.Stores{Index: c}, Parts: overview.Parts{People: dir}, Reports: overview.Reports{
		Spent: func(_ context.Context, q storage.SpentQuery) (sums []storage.Spent, err error) {
			if len(q.Owners) == 0 {
				return nil, storage.ErrTooMany
			}
			for _, owner := range q.Owners {
				sums = append(sums, storage.Spent{Owner: owner, Usage: claybot.Usage{Input: 7}})
			}
			return sums, nil
		},
	}}}
	got, more, err := o.ListPeople(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != listed || more != all+1-listed { // and the user of the machine
		t.Errorf("%d people are listed, and %d more", len(got), more)
	}
	for _, p := range got[1:] {
		if p.Usage.Input != 7 || len(p.Agents) != 1 {
			t.Fatalf("%s used %d tokens and has %d agents", p.ID, p.Usage.Input, len(p.Agents))
		}
	}
	if len(c.named) >= listed {
		t.Errorf("the names of %d people were read", len(c.named))
	}
}
