package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools/skills"
)

// skillPrefix is the prefix of the marks that allow skills.
const skillPrefix = "skill/"

// personKey, roleKey and ruleKey are keys of files.Revoked; the key of a skill is its mark.
func personKey(connector, subject string) string { return "person/" + connector + "/" + subject }

func roleKey(role storage.Role, who string) string { return "role/" + string(role) + "/" + who }

func ruleKey(agent claybot.AgentID, rule string) string { return "rule/" + string(agent) + "/" + rule }

// A revocable is the database of a data directory. It writes a revocation to files.Revoked
// before the database changes, and removes it from there after a new approval.
type revocable struct {
	*sqlite.DB
	agents *files.Store // stores the settings of agents
	dir    string
	log    *slog.Logger

	mu sync.Mutex // held while the file changes
}

// Revoke implements storage.Access.
func (r *revocable) Revoke(ctx context.Context, connector, subject string) error {
	r.note(append(r.rolesOf(ctx, connector+"/"+subject), personKey(connector, subject)), nil)
	return r.DB.Revoke(ctx, connector, subject)
}

// rolesOf returns the keys of the roles of identities. Of those that cannot be read, the call that
// follows fails.
func (r *revocable) rolesOf(ctx context.Context, who ...string) (keys []string) {
	all, _, _ := r.Roles(ctx, who...)
	for _, g := range all {
		keys = append(keys, roleKey(g.Role, g.Who))
	}
	return keys
}

// SetRole implements storage.Roles.
func (r *revocable) SetRole(ctx context.Context, c storage.RoleChange) (storage.RoleChange, error) {
	had := r.rolesOf(ctx, append([]string{c.Who}, c.Others...)...)
	done, err := r.DB.SetRole(ctx, c)
	if err == nil {
		r.noteRole(had, c)
	}
	return done, err
}

// noteRole notes a change of a role of identities that had roles.
func (r *revocable) noteRole(had []string, c storage.RoleChange) {
	given := roleKey(c.After, c.Who)
	r.note(slices.DeleteFunc(had, func(key string) bool { return key == given }), []string{given})
}

// Grant implements storage.Access.
func (r *revocable) Grant(ctx context.Context, g storage.Grant, notice ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	ended := r.endedBy(ctx, g)
	out, err := r.DB.Grant(ctx, g, notice...)
	if err == nil {
		r.note(ended, []string{personKey(g.Connector, g.Subject)})
	}
	return out, err
}

// endedBy returns the keys of the roles that a grant ends.
func (r *revocable) endedBy(ctx context.Context, g storage.Grant) []string {
	if !g.Anew {
		return nil
	}
	return r.rolesOf(ctx, g.Connector+"/"+g.Subject)
}

// Post implements storage.Inbox.
func (r *revocable) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	var ended, had []string
	if p.Grant != nil {
		ended = r.endedBy(ctx, *p.Grant)
	}
	if c := p.Role; c != nil {
		had = r.rolesOf(ctx, append([]string{c.Who}, c.Others...)...)
	}
	done, err := r.DB.Post(ctx, p)
	if err == nil && p.Role != nil && done.Added {
		r.noteRole(had, *p.Role)
	}
	if err == nil && p.Grant != nil && done.Added {
		r.note(ended, []string{personKey(p.Grant.Connector, p.Grant.Subject)})
	}
	return done, err
}

// SetCheckpoint implements storage.Checkpoints.
func (r *revocable) SetCheckpoint(ctx context.Context, key, value string) error {
	skill := strings.HasPrefix(key, skillPrefix)
	if skill && value == "" {
		r.note([]string{key}, nil)
	}
	err := r.DB.SetCheckpoint(ctx, key, value)
	if err == nil && skill && value != "" {
		r.note(nil, []string{key})
	}
	return err
}

// AgentSettings implements storage.Settings.
func (r *revocable) AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	return r.agents.AgentSettings(ctx)
}

// SaveAgentSettings implements storage.Settings.
func (r *revocable) SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error {
	all, err := r.AgentSettings(ctx)
	if err != nil {
		return err
	}
	var gone, kept []string
	for _, rule := range all[id].Approved {
		if !slices.Contains(s.Approved, rule) {
			gone = append(gone, ruleKey(id, rule))
		}
	}
	for _, rule := range s.Approved {
		kept = append(kept, ruleKey(id, rule))
	}
	r.note(gone, nil)
	err = r.agents.SaveAgentSettings(ctx, id, s)
	if err == nil {
		r.note(nil, kept)
	}
	return err
}

// note changes the file. A full disk does not prevent a revocation.
func (r *revocable) note(revoked, approved []string) {
	if len(revoked)+len(approved) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := files.ReadRevoked(r.dir)
	if err == nil {
		changed := len(revoked) > 0
		for _, key := range revoked {
			all.At[key] = claybot.Now()
		}
		for _, key := range approved {
			_, was := all.At[key]
			changed = changed || was
			delete(all.At, key)
		}
		if changed {
			err = files.SaveRevoked(r.dir, all)
		}
	}
	if err != nil {
		r.log.Error("failed to record a revocation outside of the database; a restore of an older copy may undo it", "err", err)
	}
}

// A withdrawn lists approvals in an older state of the database that were revoked since.
type withdrawn struct{ people, roles, rules, skills []string }

func (w withdrawn) any() bool { return len(w.people)+len(w.roles)+len(w.rules)+len(w.skills) > 0 }

// String is a sentence for operators.
func (w withdrawn) String() string {
	if !w.any() {
		return "No approval of a person, role, rule or skill in this state was revoked since."
	}
	var all []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"person", w.people}, {"role", w.roles}, {"rule", w.rules}, {"skill", w.skills}} {
		if len(part.names) > 0 {
			all = append(all, part.what+" "+listed(part.names))
		}
	}
	return "Revoked since, and therefore still revoked: " + strings.Join(all, "; ") + "."
}

// withdraw revokes approvals in the database that were revoked later, according to the data
// directory. restored says that the database went back to an earlier state.
func withdraw(ctx context.Context, dir string, db *sqlite.DB, restored bool) (w withdrawn, err error) {
	gone, err := revokedSince(dir, restored)
	if err != nil || gone == nil {
		return w, err
	}
	grants, err := db.Grants(ctx)
	for _, g := range grants {
		if err == nil && gone(personKey(g.Connector, g.Subject), g.At) {
			w.people = append(w.people, g.Connector+":"+g.Subject)
			err = db.Revoke(ctx, g.Connector, g.Subject)
		}
	}
	if err == nil {
		w.roles, err = withdrawRoles(ctx, db, gone)
	}
	if err == nil {
		w.rules, err = withdrawRules(ctx, db, gone)
	}
	if err == nil {
		w.skills, err = withdrawSkills(ctx, db, gone)
	}
	if err != nil {
		return w, fmt.Errorf("withdraw revoked approvals: %w", err)
	}
	return w, nil
}

// withdrawRoles takes the roles that were taken later, also that of the last owner.
func withdrawRoles(ctx context.Context, db *sqlite.DB, gone func(string, claybot.Time) bool) (names []string, err error) {
	all, _, err := db.Roles(ctx)
	for _, g := range all {
		if err == nil && gone(roleKey(g.Role, g.Who), g.At) {
			names = append(names, string(g.Role)+" of "+g.Who)
			_, err = db.SetRole(ctx, storage.RoleChange{By: "a restore", Who: g.Who, After: storage.RoleUser, Last: true})
		}
	}
	return names, err
}

// revokedSince returns a function that reports whether an approval was revoked later; nil if
// none was.
func revokedSince(dir string, restored bool) (gone func(key string, approved claybot.Time) bool, err error) {
	all, err := files.ReadRevoked(dir)
	if err != nil || len(all.At) == 0 && all.Before == 0 {
		return nil, err
	}
	return func(key string, approved claybot.Time) bool {
		at, ok := all.At[key]
		return ok && approved <= at || restored && all.Before > 0 && approved <= all.Before
	}, nil
}

// withdrawFromAgents withdraws the rules in the files of agents, which may have been rolled
// back with the database.
func (r *revocable) withdrawFromAgents(ctx context.Context) error {
	restored, err := r.Checkpoint(ctx, markRestored)
	if err != nil {
		return err
	}
	gone, err := revokedSince(r.dir, restored != "")
	if err != nil || gone == nil {
		return err
	}
	names, err := withdrawRules(ctx, r.agents, gone)
	if len(names) > 0 {
		r.log.Warn("revoked approvals withdrawn from the files of agents", "rules", names)
	}
	return err
}

// A settingsStore stores the settings of agents.
type settingsStore interface {
	AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error)
	SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
}

func withdrawRules(ctx context.Context, db settingsStore, gone func(string, claybot.Time) bool) (names []string, err error) {
	settings, err := db.AgentSettings(ctx)
	for id, s := range settings {
		had := len(names)
		s.Approved = slices.DeleteFunc(s.Approved, func(rule string) bool {
			is := gone(ruleKey(id, rule), s.ApprovedBy[rule].At)
			if is {
				names = append(names, rule+" of agent "+string(id))
				delete(s.ApprovedBy, rule)
			}
			return is
		})
		if err == nil && len(names) > had {
			if err = db.SaveAgentSettings(ctx, id, s); errors.Is(err, storage.ErrNotFound) {
				err = nil // without the agent, they have no effect
			}
		}
	}
	slices.Sort(names)
	return names, err
}

func withdrawSkills(ctx context.Context, db *sqlite.DB, gone func(string, claybot.Time) bool) (names []string, err error) {
	all, err := db.ListCheckpoints(ctx, skillPrefix)
	for _, mark := range all {
		var pin skills.Pin
		if err != nil || mark.Value == "" || json.Unmarshal([]byte(mark.Value), &pin) != nil { // not allowed
			continue
		}
		if gone(mark.Key, pin.At) {
			names = append(names, strings.TrimPrefix(mark.Key, skillPrefix))
			err = db.SetCheckpoint(ctx, mark.Key, "")
		}
	}
	return names, err
}
