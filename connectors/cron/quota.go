package cron

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// madeFolder has a file for each person whose agents created tasks. The version of the
	// file makes two members that create at once see each other.
	madeFolder = folder + "/.made"
	// countFor is how long a creation counts for the hourly limit.
	countFor = time.Hour
	// unseen is how long a task that this member does not know may have been created by
	// another member; the tree is known much sooner.
	unseen = time.Minute
)

// A Limits is what agents may create for one person.
type Limits struct {
	Tasks  int // that exist at a time
	Hourly int // that are created in an hour, including those that were deleted again
}

// A made is one task that an agent created.
type made struct {
	UID string `json:"uid"`
	At  int64  `json:"at"` // unix seconds
}

// A quota counts the tasks that agents create, by person.
type quota struct {
	cfg   *Config
	table *table
	tree  *storage.Mirror
}

// limits are those of the configuration.
func (q *quota) limits() Limits {
	if q.cfg.Limits == nil {
		return Limits{configs.DefaultTasks, configs.DefaultHourlyTasks}
	}
	return q.cfg.Limits()
}

// person names the person of an owner.
func (q *quota) person(owner string) string {
	if q.cfg.Person == nil || owner == "" {
		return owner
	}
	return q.cfg.Person(owner)
}

// take counts the creation of a task, or refuses it with a sentence for the agent. It is
// atomic: of members that create at once, all see each other's. It is durable before the
// task exists, so that a crash in between counts one too many, never one too few. The caller
// holds the lock of the files.
func (q *quota) take(ctx context.Context, t connectors.TaskSpec, uid string) error {
	who, most := q.person(t.Owner), q.limits()
	_, err := storage.EditFile(ctx, q.tree, madePath(who), func(old storage.TreeFile) ([]byte, error) {
		now := q.table.sched.Now()
		recent := recentOf(old.Body, now)
		if n := q.count(who, recent, now); n >= most.Tasks {
			return nil, fmt.Errorf("there are %d tasks already, and cron.max_tasks allows %d for each person; delete some before you create more", n, most.Tasks)
		}
		switch n := len(recent); {
		case most.Hourly == 0:
			return nil, errors.New("agents may create no tasks here: cron.max_new_per_hour is 0")
		case n >= most.Hourly:
			wait := time.Unix(recent[n-most.Hourly].At, 0).Add(countFor).Sub(now)
			return nil, fmt.Errorf("%d tasks were created within an hour, deleted ones included, and cron.max_new_per_hour allows %d for each person; try again in %d minutes",
				n, most.Hourly, max(int(math.Ceil(wait.Minutes())), 1))
		}
		return json.Marshal(append(recent, made{uid, now.Unix()}))
	})
	return err
}

// giveBack takes a creation back that failed.
func (q *quota) giveBack(ctx context.Context, t connectors.TaskSpec, uid string) error {
	_, err := storage.EditFile(ctx, q.tree, madePath(q.person(t.Owner)), func(old storage.TreeFile) ([]byte, error) {
		left := slices.DeleteFunc(recentOf(old.Body, q.table.sched.Now()), func(m made) bool { return m.UID == uid })
		return json.Marshal(left)
	})
	return err
}

// count is how many tasks a person has, including those that another member has just
// created.
func (q *quota) count(who string, recent []made, now time.Time) (n int) {
	q.table.sched.Mu.Lock()
	defer q.table.sched.Mu.Unlock()
	for _, t := range q.table.tasks {
		if q.person(t.def.spec.Owner) == who {
			n++
		}
	}
	for _, m := range recent {
		if _, known := q.table.tasks[m.UID]; !known && now.Sub(time.Unix(m.At, 0)) < unseen {
			n++
		}
	}
	return n
}

// recentOf reads the creations that still count, oldest first. Those in the future, after
// the clock was set back, count as of now. A damaged file has none.
func recentOf(body []byte, now time.Time) []made {
	var all []made
	if json.Unmarshal(body, &all) != nil {
		return []made{}
	}
	recent := make([]made, 0, len(all)+1)
	for _, m := range all {
		m.At = min(m.At, now.Unix())
		if now.Sub(time.Unix(m.At, 0)) < countFor {
			recent = append(recent, m)
		}
	}
	slices.SortStableFunc(recent, func(x, y made) int { return int(x.At - y.At) })
	return recent
}

func madePath(who string) string {
	sum := sha256.Sum256([]byte(who))
	return path.Join(madeFolder, hex.EncodeToString(sum[:16])+".json")
}
