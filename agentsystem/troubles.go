package agentsystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// troublePrefix starts the keys of the marks of what operators know of each trouble, and
	// budgetPrefix those of budgets that stopped runs, of which they are still to be told.
	troublePrefix = "notice/trouble/"
	budgetPrefix  = "notice/budget/"
	// troubleEvery is the shortest time between two notices about one trouble.
	troubleEvery = time.Hour
	// lostPage is how many failed messages are looked through, and lostFor how old they may be.
	lostPage = 200
	lostFor  = 24 * time.Hour
	// knownMost bounds what is remembered of one trouble.
	knownMost = 500
	// fullSlack is how far apart the times may be at which members of a cluster find their store
	// full, and fullFor how old such a time may be.
	fullSlack = 15 * time.Minute
	fullFor   = 7 * 24 * time.Hour
)

// A trouble is a kind of fault of which operators are told, all faults of it together. A crash
// between a notice and its mark repeats the notice only where it has more to say.
type trouble struct {
	name string // of its mark
	// find returns what is wrong now, by key. A value that changed is wrong anew.
	find func(ctx context.Context) (map[string]string, error)
	// same reports whether what operators know says what is wrong too, though its key is another
	// one; nil: it does not.
	same func(known map[string]string, key string) bool
	// still reports whether what is wrong and not known is to be told; nil: it is.
	still func(ctx context.Context, key string) (bool, error)
	say   func(v texts.Voice, fresh []string) string
	// present: what is not found any more is forgotten, so that its return is told.
	present bool
	// mark returns the key of the mark of a fault, which is removed once operators know; nil:
	// there is none.
	mark func(key, value string) string
}

// A knownTrouble is what operators know of a trouble, as its mark.
type knownTrouble struct {
	At    claybot.Time      `json:"at"` // of the last notice
	Known map[string]string `json:"known"`
}

// Troubles tell operators of faults, grouped by kind.
type troubles struct {
	people    *people.Directory
	marks     storage.CheckpointSet // nil: nothing is told
	outbox    storage.OutboxReader
	index     storage.Index
	sender    *delivery.Deliverer
	instances func() platforms.Instances
	filled    func() time.Time // when a write last found the disk full; zero for never
	named     func() []string  // the chats that the settings name; nil: none
	members   *cluster.Membership
}

func (f *troubles) all() []trouble {
	return []trouble{
		{name: "lost", find: f.lost, still: f.stillLost, say: func(v texts.Voice, fresh []string) string { return v.RepliesLost(len(fresh)) }},
		{name: "routes", find: f.deadRoutes, say: sayDeadRoutes},
		{name: "renamed", find: f.renamed, say: func(v texts.Voice, fresh []string) string { return v.ChatsRenamed(fresh) }, present: true},
		{name: "budgets", find: f.spentBudgets, say: func(v texts.Voice, fresh []string) string { return v.BudgetsSpent(len(fresh)) }, mark: budgetMark},
		{name: "full", find: f.fullStore, same: nearKnown, say: sayFull},
	}
}

// report tells operators of the faults of a trouble that they do not know.
func (f *troubles) report(ctx context.Context, t trouble) error {
	now, err := t.find(ctx)
	if err != nil || len(now) == 0 && !t.present {
		return err
	}
	key := troublePrefix + t.name
	text, err := f.marks.Checkpoint(ctx, key)
	if err != nil {
		return err
	}
	var mark knownTrouble
	if text != "" {
		_ = json.Unmarshal([]byte(text), &mark) // what is damaged is replaced
	}
	fresh, err := t.fresh(ctx, now, mark.Known)
	if err == nil {
		err = f.forget(ctx, t, now, mark.Known)
	}
	if err != nil {
		return err
	}
	before := len(mark.Known)
	if t.present || before > knownMost {
		maps.DeleteFunc(mark.Known, func(k, _ string) bool { return now[k] == "" })
	}
	switch {
	case len(fresh) == 0 && len(mark.Known) == before:
		return nil
	case len(fresh) > 0 && time.Since(mark.At.Time()) < troubleEvery:
		return nil
	case len(fresh) > 0:
		told, err := f.people.TellOperators(ctx, hourly("trouble/"+t.name, strings.Join(fresh, "\n")), nil, func(v texts.Voice) string { return t.say(v, fresh) })
		if err != nil || told == 0 {
			return err
		}
		mark.At = claybot.Now()
		if mark.Known == nil {
			mark.Known = make(map[string]string)
		}
		for _, k := range fresh {
			mark.Known[k] = now[k]
		}
	}
	b, _ := json.Marshal(mark) // strings and a number always encode
	return f.marks.SetCheckpoint(ctx, key, string(b))
}

// fresh returns the sorted keys of what is wrong now and to be told.
func (t trouble) fresh(ctx context.Context, now, known map[string]string) ([]string, error) {
	var all []string
	for k, value := range now {
		if known[k] == value || t.same != nil && t.same(known, k) {
			continue
		}
		if t.still != nil {
			if still, err := t.still(ctx, k); err != nil || !still {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		all = append(all, k)
	}
	slices.Sort(all)
	return all, nil
}

// forget removes the marks of faults that operators know.
func (f *troubles) forget(ctx context.Context, t trouble, now, known map[string]string) error {
	marks := make(map[string]string)
	for k, value := range now {
		if t.mark != nil && known[k] == value {
			marks[t.mark(k, value)] = ""
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return f.marks.SetCheckpoints(ctx, marks)
}

// lost finds replies that were given up, except on dead routes.
func (f *troubles) lost(ctx context.Context) (map[string]string, error) {
	page, err := f.failed(ctx)
	all := make(map[string]string)
	for _, o := range page {
		if _, dead := f.sender.Routes.Dead(o.Route); !dead && delivery.Lost(o) {
			all[o.ID] = fmt.Sprint(int64(o.Tried))
		}
	}
	return all, err
}

// stillLost reports whether a reply that was given up did not go out otherwise.
func (f *troubles) stillLost(ctx context.Context, id string) (bool, error) {
	otherwise, err := f.sender.Replies.Otherwise(ctx, id)
	return !otherwise, err
}

// failed lists the messages that failed lately.
func (f *troubles) failed(ctx context.Context) ([]claybot.Outgoing, error) {
	page, err := f.outbox.OutgoingPage(ctx, storage.OutgoingQuery{State: claybot.SendFailed, Limit: lostPage})
	return slices.DeleteFunc(page, func(o claybot.Outgoing) bool {
		return time.Since(max(o.At, o.Tried).Time()) > lostFor
	}), err
}

// Keys of dead routes: of a group, and of a task that answers on a dead route.
const (
	deadGroup = "group "
	deadTask  = "task "
)

// deadRoutes finds groups whose route is dead, and tasks that answer on one. What a person
// does with their own chat is up to them.
func (f *troubles) deadRoutes(ctx context.Context) (map[string]string, error) {
	dead := f.sender.Routes.AllDead()
	if len(dead) == 0 {
		return nil, nil
	}
	all := make(map[string]string)
	for _, r := range dead {
		// Of Telegram, the id of a group is negative and that of a person is not.
		if !f.instances().Direct(r.Connector, r.ChannelID, strings.TrimPrefix(r.ChannelID, "-")) {
			all[deadGroup+r.String()] = fmt.Sprint(int64(r.Since))
		}
	}
	page, err := f.failed(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range page {
		r, isDead := f.sender.Routes.Dead(o.Route)
		if !isDead || o.Agent == "" || all[deadGroup+r.String()] != "" {
			continue
		}
		d, err := f.index.IndexedDescriptor(ctx, o.Agent)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		if d.Type == claybot.AgentCron {
			all[deadTask+cmp.Or(connectors.OneLine(d.Name, 80), d.UID)] = fmt.Sprint(int64(r.Since))
		}
	}
	return all, nil
}

// renamed finds the chats that the settings name by an id that they have no more.
func (f *troubles) renamed(context.Context) (map[string]string, error) {
	all := make(map[string]string)
	if f.named == nil {
		return all, nil
	}
	for _, x := range f.people.Renamed(f.named()) {
		all[x.Was+" "+x.Now] = x.Now
	}
	return all, nil
}

func sayDeadRoutes(v texts.Voice, fresh []string) string {
	groups := make(map[string]int) // by connector
	var tasks []string
	for _, k := range fresh {
		if name, task := strings.CutPrefix(k, deadTask); task {
			tasks = append(tasks, name)
			continue
		}
		connector, _, _ := strings.Cut(strings.TrimPrefix(k, deadGroup), "/")
		groups[connector]++
	}
	return v.RoutesDead(groups, tasks)
}

// spent makes operators be told that a hard budget has stopped a run, with what the budget and
// its limit are. It returns once that is durable.
func (f *troubles) spent(ctx context.Context, key string, limit int64) error {
	if f.marks == nil {
		return nil
	}
	value := fmt.Sprint(limit)
	return f.marks.SetCheckpoint(ctx, budgetMark(key, value), value)
}

// budgetMark is the key of the mark of a budget that stopped runs at a limit.
func budgetMark(key, limit string) string { return budgetPrefix + key + "/" + limit }

// spentBudgets finds the budgets that stopped runs and of which operators may not know yet.
func (f *troubles) spentBudgets(ctx context.Context) (map[string]string, error) {
	list, err := f.marks.ListCheckpoints(ctx, budgetPrefix)
	all, beyond := make(map[string]string), make(map[string]string)
	for i, m := range list {
		if i >= knownMost { // no operator could be reached for long
			beyond[m.Key] = ""
			continue
		}
		all[strings.TrimSuffix(strings.TrimPrefix(m.Key, budgetPrefix), "/"+m.Value)] = m.Value
	}
	if err == nil && len(beyond) > 0 {
		err = f.marks.SetCheckpoints(ctx, beyond)
	}
	return all, err
}

// fullStore finds out whether the store was full, in this process or an earlier one. While it is,
// the notice about that cannot be stored either, so it is tried again until the store works. The
// time is the key, not the member: its name may be another one after a restart, and members share
// a store.
func (f *troubles) fullStore(context.Context) (map[string]string, error) {
	at := f.filled()
	if at.IsZero() || time.Since(at) > fullFor {
		return nil, nil
	}
	return map[string]string{fmt.Sprint(int64(claybot.At(at))): "full"}, nil
}

// filledAt is the time that a key of fullStore names.
func filledAt(key string) claybot.Time {
	at, _ := strconv.ParseInt(key, 10, 64) // as fullStore writes it
	return claybot.Time(at)
}

// nearKnown reports whether operators know that the store was full at about the time of a key:
// each member of a cluster finds the same full store at another moment.
func nearKnown(known map[string]string, key string) bool {
	for k := range known {
		if filledAt(key).Time().Sub(filledAt(k).Time()).Abs() <= fullSlack {
			return true
		}
	}
	return false
}

func sayFull(v texts.Voice, fresh []string) string {
	return v.StoreFilled(filledAt(fresh[len(fresh)-1]))
}
