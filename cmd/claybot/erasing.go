package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace"
)

// erasing is what an operator needs to erase a person.
type erasing struct {
	stores     *stores
	workspaces *workspaces
	box        *toolbox
}

// A taskEraser is a connector of tasks that can erase those of owners.
type taskEraser interface {
	Forget(ctx context.Context, owners []string, dry bool) (int, error)
}

// Kept says what claybot keeps of a person.
func (o operator) Kept(ctx context.Context, owner string) (web.PersonData, error) {
	p, out, err := o.person(ctx, owner)
	if err == nil {
		out.Rows, err = o.stores.db.Erase(ctx, p, true)
	}
	if err == nil {
		err = o.countOthers(ctx, p, &out)
	}
	return out, err
}

// Forget erases what claybot keeps of a person. The order lets a call that was cut short be
// repeated: an agent that is deleted is found in the quarantine, which goes last.
func (o operator) Forget(ctx context.Context, owner string, skipWorkspaces bool) (web.PersonData, error) {
	p, out, err := o.person(ctx, owner)
	if err != nil {
		return out, err
	}
	if err := o.onlyHere(ctx, p.Owners...); err != nil {
		return out, err
	}
	if left := unfinished(out.Unfinished); left != "" {
		return out, web.Refusal(fmt.Sprintf("%s has unfinished work: %s. Revoke the person's access (claybot pair revoke), stop their agents (claybot agents stop), "+
			"wait until the runs have ended, and try again", strings.Join(p.Owners, ", "), left))
	}
	if err := o.countOthers(ctx, p, &out); err != nil {
		return out, err
	}
	gone, err := o.stores.db.Erase(ctx, p, true) // what goes with the agents is counted before
	if err != nil {
		return out, err
	}
	if err := o.endAccess(ctx, p); err != nil {
		return out, err
	}
	if t, ok := o.box.tasks.(taskEraser); ok {
		if _, err := t.Forget(ctx, p.Owners, false); err != nil {
			return out, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Agents)) {
		if err := o.DeleteAgent(ctx, id); storage.Ignore(err, storage.ErrNotFound) != nil {
			return out, err
		}
	}
	elsewhere, err := o.eraseWorkspaces(ctx, p)
	if err != nil {
		return out, err
	}
	if len(elsewhere) > 0 && !skipWorkspaces {
		return out, web.Refusal(fmt.Sprintf("%s on other machines: %s. Run claybot forget on a member there. If a machine is gone for good, "+
			"add --skip-workspaces: they stay, and the rest is erased", count(len(elsewhere), "workspace"), strings.Join(elsewhere, "; ")))
	}
	out.Workspaces -= len(elsewhere)
	for _, w := range elsewhere {
		out.Stays = append(out.Stays, "not erased: "+w+"; remove its container or folder there")
	}
	if _, err := o.stores.db.Erase(ctx, p, false); err != nil {
		return out, err
	}
	for _, id := range slices.Sorted(maps.Keys(p.Agents)) {
		if err := o.stores.agents.EraseDeleted(ctx, id); err != nil {
			return out, err
		}
	}
	o.ForgetVoices()
	if err := o.Load(ctx); err != nil { // the roles
		return out, err
	}
	out.Rows, out.Erased = gone, true
	o.stores.log.Info("erased a person", "agents", len(p.Agents), "runs", gone.Runs, "messages", gone.Messages)
	return out, nil
}

// person finds the identities and agents of a person, and their unfinished work.
func (o operator) person(ctx context.Context, owner string) (p storage.Person, out web.PersonData, err error) {
	p.Owners = o.Identities(owner)
	if p.Agents, err = o.stores.agents.DeletedAgents(ctx, p.Owners); err != nil {
		return p, out, err
	}
	var runs, waiting int
	for _, id := range p.Owners {
		owned, err := o.stores.db.OwnedAgents(ctx, id)
		if err != nil {
			return p, out, err
		}
		for _, e := range owned {
			p.Agents[e.ID] = e.Descriptor
			if e.Run != "" {
				runs++
			}
			if e.Busy { // silent messages never start a run
				waiting += e.Waiting
			}
		}
	}
	out.Person, out.Agents = p.Owners, slices.Sorted(maps.Keys(p.Agents))
	if out.Unfinished, err = o.stores.db.Unfinished(ctx, p); err != nil {
		return p, out, err
	}
	out.Unfinished.Runs, out.Unfinished.Waiting = runs, waiting
	grants, err := o.Grants(ctx)
	if err != nil {
		return p, out, err
	}
	for _, g := range grants {
		if slices.Contains(p.Owners, g.Connector+"/"+g.Subject) {
			out.Grants++
		}
	}
	out.Stays = o.stays(p)
	return p, out, nil
}

// countOthers counts what is not in the store.
func (o operator) countOthers(ctx context.Context, p storage.Person, out *web.PersonData) (err error) {
	if t, ok := o.box.tasks.(taskEraser); ok {
		if out.Tasks, err = t.Forget(ctx, p.Owners, true); err != nil {
			return err
		}
	}
	all, err := o.personWorkspaces(ctx, p)
	out.Workspaces = len(all)
	return err
}

// endAccess revokes what was granted to a person, so that no new agent comes while the others
// go.
func (o operator) endAccess(ctx context.Context, p storage.Person) error {
	for _, owner := range p.Owners {
		connector, user, _ := strings.Cut(owner, "/")
		if err := o.Control.Revoke(ctx, connector, user); storage.Ignore(err, storage.ErrNotFound) != nil {
			return err
		}
	}
	return nil
}

// personWorkspaces lists the workspaces of the agents of a person, and of the person.
func (o operator) personWorkspaces(ctx context.Context, p storage.Person) (own []workspace.Listed, err error) {
	if o.workspaces == nil {
		return nil, nil
	}
	all, err := o.workspaces.manager.List(ctx)
	for _, w := range all {
		_, of := p.Agents[w.Agent]
		owner, is := strings.CutPrefix(string(w.Key), "owner/")
		if w.State != workspace.Removed && (of || is && slices.Contains(p.Owners, owner)) {
			own = append(own, w)
		}
	}
	return own, err
}

// eraseWorkspaces removes the workspaces that are left on this machine. It names those on the
// machines of other members, which must be removed there.
func (o operator) eraseWorkspaces(ctx context.Context, p storage.Person) (elsewhere []string, err error) {
	all, err := o.personWorkspaces(ctx, p)
	errs := []error{err}
	for _, w := range all {
		if w.Node != o.workspaces.id {
			elsewhere = append(elsewhere, fmt.Sprintf("%s workspace %s of installation %s, last used %s", w.Provider, w.Key, w.Node, moment(w.LastUsed)))
			continue
		}
		errs = append(errs, o.workspaces.manager.Remove(ctx, w.Provider, w.Key, true))
	}
	return elsewhere, errors.Join(errs...)
}

// stays says what stays of a person.
func (o operator) stays(p storage.Person) []string {
	c := o.config()
	all := []string{
		"usage and cost in totals, without texts",
		"the ids of messages, until retention.runs, so that a message that the platform delivers again does not run",
		"what they wrote in groups whose members share an agent: delete that agent to erase its conversation",
		"notes that agents share with everyone, and what claybot has sent to the platform, to models, tools and relays",
	}
	if !c.Storage.Shared() && c.Storage.Copies > 0 {
		all = append(all, fmt.Sprintf("copies of the database in %s, of which the last one from before is replaced after %s", copiesDir, count(c.Storage.Copies, "day")))
	} else {
		all = append(all, "backups of the database")
	}
	if o.box.tasks == nil {
		all = append(all, "scheduled tasks, because cron is off")
	}
	for _, owner := range p.Owners {
		connector, user, _ := strings.Cut(owner, "/")
		if still := allowedBy(c, connector, user); still != "" {
			all = append(all, owner+" keeps access: "+still)
		}
	}
	return all
}

// unfinished lists unfinished work; empty for none.
func unfinished(u storage.Unfinished) string {
	var all []string
	for _, x := range []struct {
		n    int
		what string
	}{{u.Runs, "run"}, {u.Waiting, "waiting message"}, {u.Parked, "parked message"}, {u.Outgoing, "unsent message"}} {
		if x.n > 0 {
			all = append(all, count(x.n, x.what))
		}
	}
	return strings.Join(all, ", ")
}
