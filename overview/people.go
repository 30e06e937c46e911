package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A Person is what claybot knows of a person, over all their identities. It has nothing of what
// they wrote.
type Person struct {
	ID         string        `json:"id" doc:"The first identity, as connector:user."`
	Name       string        `json:"name,omitempty" doc:"The name in people of the configuration."`
	Role       storage.Role  `json:"role" doc:"owner, operator or user: the highest of all identities."`
	Identities []Identity    `json:"identities"`
	Language   string        `json:"language" doc:"In which claybot writes to them."`
	Timezone   string        `json:"timezone" doc:"An IANA name."`
	LastAt     claybot.Time  `json:"lastAt,omitempty" doc:"When they last wrote to an agent."`
	Agents     []PersonAgent `json:"agents" doc:"Of their conversations, the most recently used first."`
	// Usage and Budgets cover the conversations of the person, subagents included.
	Usage   claybot.Usage  `json:"usage" doc:"What their agents used this month, in UTC."`
	Budgets []PersonBudget `json:"budgets" doc:"Budgets per owner that their next call counts on."`
}

// An Identity is a user of a platform.
type Identity struct {
	ID        string            `json:"id" doc:"connector:user"`
	Connector string            `json:"connector"`
	Platform  string            `json:"platform"`
	User      string            `json:"user"`
	Name      string            `json:"name,omitempty" doc:"As the platform gives it; not verified."`
	Access    people.Admission  `json:"access" doc:"console: by the login of the page or the terminal. approved: by a code, a link or an id. listed: by access.allow. open: access is open. group: only in groups with access. none."`
	Since     claybot.Time      `json:"since,omitempty" doc:"When they were approved."`
	Role      storage.Role      `json:"role"`
	RoleFrom  people.RoleSource `json:"roleFrom,omitempty" doc:"console, configuration, or given: by an owner."`
	Request   *PersonRequest    `json:"request,omitempty" doc:"The open request for access."`
}

// A PersonRequest is an open request for access.
type PersonRequest struct {
	Code    string       `json:"code"`
	At      claybot.Time `json:"at"`
	Expires claybot.Time `json:"expires"`
}

// A PersonAgent is the agent of a conversation of a person.
type PersonAgent struct {
	ID        claybot.AgentID `json:"id"`
	Connector string          `json:"connector"`
	Channel   string          `json:"channel"`
	Place     string          `json:"place,omitempty" doc:"The name of the group or channel, as the platform gives it."`
	LastAt    claybot.Time    `json:"lastAt,omitempty"`
}

// A PersonBudget is a budget of a person.
type PersonBudget struct {
	Name   string       `json:"name"`
	Unit   storage.Unit `json:"unit"`
	Limit  int64        `json:"limit" doc:"With extensions; millionths of a US dollar, or tokens."`
	Spent  int64        `json:"spent" doc:"With what calls under way have reserved."`
	Resets claybot.Time `json:"resets,omitempty" doc:"When the next period begins."`
}

// maxPeople is how many people ListPeople returns, and maxSeen how many agents it looks at.
const (
	maxPeople = 1000
	maxSeen   = 20_000
	agentPage = 500
)

// ListPeople lists the people whom claybot knows: owners and operators first, then by their last
// message, the latest first. more is how many it left out.
func (o *Listings) ListPeople(ctx context.Context) (all []Person, more int, err error) {
	if all, err = o.people(ctx, nil); err != nil {
		return nil, 0, err
	}
	more = max(len(all)-maxPeople, 0)
	all = all[:len(all)-more]
	o.describe(ctx, all)
	return all, more, o.spending(ctx, all)
}

// PersonOf returns the person with an identity, "connector/userId"; storage.ErrNotFound where
// claybot does not know them.
func (o *Listings) PersonOf(ctx context.Context, owner string) (Person, error) {
	all, err := o.people(ctx, o.People.Identities(owner))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", owner, storage.ErrNotFound)
	}
	if err != nil {
		return Person{}, err
	}
	o.describe(ctx, all[:1])
	return all[0], o.spending(ctx, all[:1])
}

// people lists people, without what describe and spending add; only those with one of some identities unless
// these are nil.
func (o *Listings) people(ctx context.Context, only []string) ([]Person, error) {
	r := &roll{Listings: o, only: only, ids: make(map[string]*Identity), agents: make(map[string][]storage.IndexEntry), channels: make(map[string]bool)}
	if err := r.collect(ctx); err != nil {
		return nil, err
	}
	all := r.persons()
	slices.SortStableFunc(all, func(a, b Person) int {
		return cmp.Or(cmp.Compare(rank(a.Role), rank(b.Role)), cmp.Compare(b.LastAt, a.LastAt), strings.Compare(a.ID, b.ID))
	})
	return all, nil
}

// english is the code of texts.English, which is the zero Language.
const english = "en"

func rank(r storage.Role) int {
	return slices.Index([]storage.Role{storage.RoleOwner, storage.RoleOperator, storage.RoleUser}, r)
}

// A roll collects identities, by "connector/userId".
type roll struct {
	*Listings
	only     []string
	ids      map[string]*Identity
	agents   map[string][]storage.IndexEntry // by the owner
	channels map[string]bool                 // groups and channels, which are no people
}

// at returns an identity, which it adds; nil for what is no person or not asked for.
func (r *roll) at(connector, user string) *Identity {
	owner := connector + "/" + user
	if r.only != nil && !slices.Contains(r.only, owner) || r.channels[owner] || !r.People.IsPerson(connector, user) {
		return nil
	}
	if r.ids[owner] == nil {
		r.ids[owner] = &Identity{ID: connector + ":" + user, Connector: connector, Platform: r.People.Platform(connector), User: user}
	}
	return r.ids[owner]
}

// collect finds the identities: the agents come first, because they show which ids are channels.
func (r *roll) collect(ctx context.Context) error {
	if err := r.collectAgents(ctx); err != nil {
		return err
	}
	for owner := range r.agents {
		connector, user, _ := strings.Cut(owner, "/")
		r.at(connector, user)
	}
	fixed := slices.Concat(people.OperatorConsoles, r.People.Operators(), slices.Concat(slices.Collect(maps.Values(r.named()))...))
	for _, owner := range fixed {
		connector, user, _ := strings.Cut(owner, "/")
		r.at(connector, user)
	}
	for _, a := range r.People.Allowlist() {
		r.at(a[0], a[1])
	}
	grants, err := r.People.StoredGrants(ctx)
	if err != nil {
		return fmt.Errorf("list grants: %w", err)
	}
	for _, g := range grants {
		if id := r.at(g.Connector, g.Subject); id != nil {
			id.Name, id.Since = g.Name, g.At
		}
	}
	requests, err := r.People.Pairings(ctx)
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for _, p := range requests {
		if id := r.at(p.Connector, p.UserID); id != nil {
			id.Name, id.Request = p.Name, &PersonRequest{Code: p.Code, At: p.At, Expires: p.Expires}
		}
	}
	return nil
}

func (r *roll) named() map[string][]string {
	if r.Named == nil {
		return nil
	}
	return r.Named()
}

// collectAgents reads the agents of conversations. Programs are no people.
func (r *roll) collectAgents(ctx context.Context) error {
	owners := r.only
	if owners == nil {
		owners = []string{""} // all
	}
	for _, owner := range owners {
		if err := r.collectOwned(ctx, owner); err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
	}
	return nil
}

// collectOwned reads the agents of an owner, or of all. Behind an agent that was deleted meanwhile it
// goes on after the one before.
func (r *roll) collectOwned(ctx context.Context, owner string) error {
	var seen []claybot.AgentID // in order
	known := make(map[claybot.AgentID]bool)
	for len(known) < maxSeen {
		q := storage.AgentQuery{Type: claybot.AgentUser, Owner: owner, Limit: agentPage}
		if len(seen) > 0 {
			q.After = seen[len(seen)-1]
		}
		page, err := r.Index.AgentPage(ctx, q)
		if errors.Is(err, storage.ErrNotFound) && len(seen) > 0 {
			seen = seen[:len(seen)-1]
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range page {
			if seen = append(seen, e.ID); !known[e.ID] {
				known[e.ID] = true
				r.add(e)
			}
		}
		if len(page) < agentPage {
			break
		}
	}
	return nil
}

func (r *roll) add(e storage.IndexEntry) {
	d := e.Descriptor
	if place := r.People.AudienceOf(d, claybot.Route{}).Place; place != "" {
		r.channels[place] = true
		if i := strings.LastIndexByte(d.ChannelID, '/'); i >= 0 { // lists may leave out the server or workspace
			r.channels[d.Connector+"/"+d.ChannelID[i+1:]] = true
		}
	}
	if d.Shared() || r.People.Program(d) || !r.People.IsPerson(d.Connector, d.UserID) {
		return
	}
	r.agents[d.OwnerID()] = append(r.agents[d.OwnerID()], e)
}

// persons joins the identities that belong together.
func (r *roll) persons() (all []Person) {
	names := make(map[string]string)
	for name, ids := range r.named() {
		for _, id := range ids {
			names[id] = name
		}
	}
	joined := make(map[string]bool)
	for _, owner := range slices.Sorted(maps.Keys(r.ids)) {
		if joined[owner] {
			continue
		}
		p := Person{Name: names[owner], Role: storage.RoleUser, Identities: []Identity{}, Agents: []PersonAgent{}, Budgets: []PersonBudget{}}
		for _, id := range r.together(owner) {
			if joined[id] || r.ids[id] == nil {
				continue
			}
			joined[id] = true
			r.complete(&p, id)
		}
		p.ID = p.Identities[0].ID
		slices.SortStableFunc(p.Agents, func(a, b PersonAgent) int { return cmp.Compare(b.LastAt, a.LastAt) })
		all = append(all, p)
	}
	return all
}

// together returns the identities of a person, in the order of the configuration. The page and the
// terminal have the same person, unless people says otherwise.
func (r *roll) together(owner string) []string {
	ids := r.People.Identities(owner)
	if len(ids) > 1 || !slices.Contains(people.OperatorConsoles, owner) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(people.OperatorConsoles), func(console string) bool { return len(r.People.Identities(console)) > 1 })
}

// complete adds an identity with its agents to a person.
func (r *roll) complete(p *Person, owner string) {
	id := *r.ids[owner]
	id.Role, id.RoleFrom = r.People.RoleOf(owner)
	id.Access = r.People.AdmissionOf(id.Connector, id.User)
	for _, e := range r.agents[owner] {
		d := e.Descriptor
		if id.Access == people.AdmittedNot && r.People.Allowed(d, true) {
			id.Access = people.AdmittedGroup
		}
		p.Agents = append(p.Agents, PersonAgent{ID: e.ID, Connector: d.Connector, Channel: d.ChannelID, LastAt: e.LastUserAt})
		p.LastAt = max(p.LastAt, e.LastUserAt)
	}
	p.Role = people.Higher(p.Role, id.Role)
	p.Identities = append(p.Identities, id)
}

// describe adds the names of people and places, and how people are spoken to.
func (o *Listings) describe(ctx context.Context, all []Person) {
	for i := range all {
		p := &all[i]
		for j := range p.Identities {
			id := &p.Identities[j]
			id.Name = cmp.Or(o.People.NameOf(ctx, id.Connector+"/"+id.User), id.Name)
		}
		for j := range p.Agents {
			a := &p.Agents[j]
			if !slices.ContainsFunc(p.Identities, func(id Identity) bool { return id.Connector == a.Connector && id.User == a.Channel }) {
				a.Place = o.People.NameOf(ctx, a.Connector+"/"+a.Channel)
			}
		}
		v := o.People.VoiceAt(ctx, claybot.Descriptor{Owner: owners(*p)[0]}, claybot.Route{})
		p.Language, p.Timezone = cmp.Or(string(v.Language), english), cmp.Or(v.Zone, time.UTC).String()
	}
}

// spending adds what people spent this month, and their budgets.
func (o *Listings) spending(ctx context.Context, all []Person) error {
	if o.Reports.Spent != nil {
		month := time.Now().UTC().Format("2006-01") + "-01"
		var asked []string // of whom to read it: there may be more owners than are listed
		for _, p := range all {
			asked = append(asked, owners(p)...)
		}
		of := make(map[string]claybot.Usage, len(asked))
		for some := range slices.Chunk(asked, maxPeople) {
			sums, err := o.Reports.Spent(ctx, storage.SpentQuery{By: []string{storage.ByOwner}, From: month, Owners: some})
			if err != nil {
				return fmt.Errorf("read the usage of people: %w", err)
			}
			for _, s := range sums {
				of[s.Owner] = of[s.Owner].Add(s.Usage)
			}
		}
		for i := range all {
			for _, owner := range owners(all[i]) {
				all[i].Usage = all[i].Usage.Add(of[owner])
			}
		}
	}
	if o.Reports.Budgets == nil {
		return nil
	}
	var newest []claybot.AgentID
	for _, p := range all {
		if len(p.Agents) > 0 {
			newest = append(newest, p.Agents[0].ID)
		}
	}
	standings, err := o.Reports.Budgets(ctx, newest...)
	if _, faulty := errors.AsType[*llm.LimitError](err); err != nil && !faulty {
		return fmt.Errorf("read the budgets of people: %w", err)
	}
	for i, p := range all {
		if len(p.Agents) > 0 {
			all[i].Budgets = budgetsOf(standings[p.Agents[0].ID])
		}
	}
	return nil
}

// owners are the identities of a person, as OwnerID.
func owners(p Person) (ids []string) {
	for _, id := range p.Identities {
		ids = append(ids, id.Connector+"/"+id.User)
	}
	return ids
}

// budgetsOf are the budgets of a person among those of an agent.
func budgetsOf(standings []budgets.Standing) []PersonBudget {
	all := []PersonBudget{}
	for _, s := range standings {
		if s.Per != budgets.PerOwner {
			continue
		}
		b := PersonBudget{Name: strings.TrimPrefix(s.Name, "your "), Unit: storage.UnitMicroUSD, Limit: s.Limit, Spent: s.Spent}
		if s.Tokens {
			b.Unit = storage.UnitTokens
		}
		if !s.Resets.IsZero() {
			b.Resets = claybot.At(s.Resets)
		}
		all = append(all, b)
	}
	return all
}
