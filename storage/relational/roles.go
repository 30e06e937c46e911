package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Roles = (*Store)(nil)

// roleNumber is the key of the checkpoint with the number of the newest change of a role. A change
// locks its row first, so that changes take turns.
const roleNumber = "role changes"

// Roles implements storage.Roles. It reads the number first: the roles include at least its changes.
func (db access) Roles(ctx context.Context, who ...string) (all []storage.RoleGrant, number int64, err error) {
	err = db.read(ctx, func(c *Conn) error {
		if number, err = roleChanges(c); err == nil {
			all, err = rolesIn(c, who...)
		}
		return err
	})
	return all, number, failed(err, "list roles")
}

// rolesIn reads the roles in the transaction, see storage.Roles. A damaged one is none.
func rolesIn(c *Conn, who ...string) (all []storage.RoleGrant, err error) {
	keys := make([]string, len(who))
	for i, id := range who {
		keys[i] = storage.CheckpointRoles + id
	}
	where, args := "key >= ? AND key < ?", []any{storage.CheckpointRoles, storage.CheckpointRoles + string(utf8.MaxRune)}
	if len(who) > 0 {
		list, err := json.Marshal(keys)
		if err != nil {
			return nil, err
		}
		where, args = "key IN (SELECT value FROM json_each(?))", []any{list}
	}
	err = c.each("SELECT key, value FROM marks WHERE "+where+" ORDER BY key", func(r Row) error {
		g := storage.RoleGrant{}
		if json.Unmarshal([]byte(r.Str(1)), &g) == nil && (g.Role == storage.RoleOwner || g.Role == storage.RoleOperator) {
			g.Who = strings.TrimPrefix(r.Str(0), storage.CheckpointRoles)
			all = append(all, g)
		}
		return nil
	}, args...)
	return all, err
}

// SetRole implements storage.Roles.
func (db access) SetRole(ctx context.Context, change storage.RoleChange) (done storage.RoleChange, err error) {
	err = db.update(ctx, func(c *Conn) error {
		done, err = setRole(c, change)
		return err
	})
	return done, failed(err, "set the role of %s", change.Who)
}

// setRole is SetRole in the transaction, of which it is the last change.
func setRole(c *Conn, change storage.RoleChange) (storage.RoleChange, error) {
	var err error
	if change.Number, err = nextRoleNumber(c); err != nil {
		return change, err
	}
	roles, err := rolesIn(c)
	if err != nil {
		return change, err
	}
	owners, owned, has, more := 0, 0, storage.Role(""), false
	change.Before = storage.RoleUser
	if change.At == 0 {
		change.At = claybot.Now()
	}
	for _, g := range roles {
		mine := g.Who == change.Who || slices.Contains(change.Others, g.Who)
		switch owner := g.Role == storage.RoleOwner && (change.Counts == nil || change.Counts(g.Who)); {
		case owner && mine:
			owned++
		case owner:
			owners++
		}
		switch {
		case g.Who == change.Who:
			has = g.Role
		case mine:
			more = true
		}
		if mine && (g.Role == storage.RoleOwner || change.Before == storage.RoleUser) {
			change.Before = g.Role
		}
	}
	switch {
	case !more && (has == change.After || has == "" && change.After == storage.RoleUser):
		return change, nil
	case owned > 0 && owners == 0 && change.After != storage.RoleOwner && !change.Last:
		return change, fmt.Errorf("%s is the last owner: %w", change.Who, storage.ErrState)
	}
	return change, storeRole(c, change)
}

// storeRole stores a change of a role.
func storeRole(c *Conn, change storage.RoleChange) error {
	for _, who := range append([]string{change.Who}, change.Others...) {
		if err := c.do("DELETE FROM marks WHERE key = ?", storage.CheckpointRoles+who); err != nil {
			return err
		}
	}
	if change.After != storage.RoleUser {
		value, err := json.Marshal(storage.RoleGrant{Role: change.After, At: change.At, By: change.By})
		if err == nil {
			err = setCheckpoint(c, storage.Checkpoint{Key: storage.CheckpointRoles + change.Who, Value: string(value)})
		}
		if err != nil {
			return err
		}
	}
	value, err := json.Marshal(change)
	if err == nil {
		err = setCheckpoint(c, storage.Checkpoint{Key: roleChangeKey(change.Number), Value: string(value)})
	}
	if err == nil {
		err = c.do("DELETE FROM marks WHERE key >= ? AND key < ?", storage.CheckpointRoleChanges, roleChangeKey(change.Number-storage.MaxRoleChanges+1))
	}
	if err != nil {
		return err
	}
	return changedBy(c, versionAccess)
}

func roleChangeKey(number int64) string {
	return fmt.Sprintf("%s%012d", storage.CheckpointRoleChanges, max(number, 0))
}

// nextRoleNumber counts a change of a role, and locks their row.
func nextRoleNumber(c *Conn) (n int64, err error) {
	err = c.do(`INSERT INTO marks (key, value) VALUES (?, '1')
		ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(marks.value AS BIGINT) + 1 AS TEXT)`, roleNumber)
	if err != nil {
		return 0, err
	}
	return roleChanges(c)
}

// roleChanges returns the number of the newest change of a role; 0 for none.
func roleChanges(c *Conn) (n int64, err error) {
	_, err = c.first("SELECT value FROM marks WHERE key = ?", func(r Row) error {
		n, err = strconv.ParseInt(r.Str(0), 10, 64)
		return err
	}, roleNumber)
	return n, err
}

// endRole takes the role of one identity, if it has one, also that of the last owner.
func endRole(c *Conn, who, by string) (ended bool, err error) {
	ended, err = c.first("SELECT value FROM marks WHERE key = ?", func(Row) error { return nil }, storage.CheckpointRoles+who)
	if err != nil || !ended {
		return false, err
	}
	_, err = setRole(c, storage.RoleChange{By: by, Who: who, After: storage.RoleUser, Last: true})
	return true, err
}

func (db access) RoleChanges(ctx context.Context) ([]storage.RoleChange, error) {
	all, err := selectAll(ctx, db, func(r Row) (c storage.RoleChange) {
		_ = json.Unmarshal([]byte(r.Str(0)), &c) // of a damaged one nothing is shown
		return c
	}, "SELECT value FROM marks WHERE key >= ?1 AND key < ?2 ORDER BY key DESC", storage.CheckpointRoleChanges, storage.CheckpointRoleChanges+string(utf8.MaxRune))
	return result(all, err, "list the changes of roles")
}

// roles erases the role of an identity, what is kept of its changes, and its name in those that it
// made. It takes turns with changes of roles, so that it restores none that another transaction ended.
func (e *eraser) roles(c *Conn, owner string) error {
	if e.dry {
		return nil
	}
	if _, err := nextRoleNumber(c); err != nil {
		return err
	}
	if err := c.do("DELETE FROM marks WHERE key = ?", storage.CheckpointRoles+owner); err != nil {
		return err
	}
	values := make(map[string]string) // empty: the checkpoint goes
	roles, err := rolesIn(c)
	for _, g := range roles {
		if g.By == owner {
			g.By = storage.ErasedPerson
			value, _ := json.Marshal(g) // strings always marshal
			values[storage.CheckpointRoles+g.Who] = string(value)
		}
	}
	if err != nil {
		return err
	}
	err = c.each("SELECT key, value FROM marks WHERE key >= ?1 AND key < ?2", func(r Row) error {
		var x storage.RoleChange
		switch err := json.Unmarshal([]byte(r.Str(1)), &x); {
		case err != nil:
		case x.Who == owner:
			values[r.Str(0)] = ""
		case x.By == owner:
			x.By = storage.ErasedPerson
			value, _ := json.Marshal(x)
			values[r.Str(0)] = string(value)
		}
		return nil
	}, storage.CheckpointRoleChanges, storage.CheckpointRoleChanges+string(utf8.MaxRune))
	if err == nil {
		err = setCheckpoints(c, values)
	}
	if err != nil {
		return err
	}
	return changedBy(c, versionAccess)
}
