package budgets

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// What a budget applies to, and how often it resets.
const (
	PerAgent   = "agent"
	PerOwner   = "owner"   // a person, on all platforms
	PerChannel = "channel" // of a connector
	PerTask    = "task"    // of the schedule
	PerRun     = "run"
	PerToken   = "token" // of a program: its own conversations; not in the configuration
	PerAll     = "all"

	EveryRun    = "run"
	EveryDay    = "day"   // in the zone of the users
	EveryMonth  = "month" // likewise
	EveryAlways = storage.PeriodAlways
)

// A Rule is a budget of the configuration. Subagents count as the agent and the run
// that began their chain.
type Rule struct {
	Per   string
	Every string
	Unit  storage.Unit
	Limit int64
	Hard  bool
	// Match narrows the rule to the agents of a profile, a connector,
	// "connector:channel", cron or heartbeat; empty: all.
	Match string
	// Token is the name of the token that a rule PerToken is for.
	Token string
	// Default: the rule is not in the configuration, which is where to replace it.
	Default bool
	// Fault says what is wrong with the rule, so that its limit is unknown. Calls to
	// which it applies are refused.
	Fault string
}

// per returns what the budget applies to.
func (r Rule) per() string {
	if r.Every == EveryRun {
		return PerRun
	}
	return r.Per
}

// period names the period of the budget that contains now.
func (r Rule) period(now time.Time) string {
	switch {
	case r.per() == PerRun:
		return EveryRun
	case r.Every == EveryDay:
		return now.Format(time.DateOnly)
	case r.Every == EveryMonth:
		return now.Format("2006-01")
	}
	return EveryAlways
}

// key names the budget of one agent, person, channel, task or run.
func (r Rule) key(of string, now time.Time) string {
	of = cmp.Or(r.Token, of)
	key := strings.Join([]string{r.per(), of, r.period(now), string(r.Unit)}, "/")
	if !r.Hard {
		key += "/warn"
	}
	if r.Match != "" {
		key += "/" + r.Match
	}
	return key
}

// A payer is the agent that pays for a call: the root of a chain of subagents.
type payer struct {
	id     claybot.AgentID
	root   claybot.Descriptor // of the same
	person string             // for whom a shared agent works; empty for any other, and where it is unknown
}

// owner is who pays as a person, in the form of Descriptor.OwnerID: a member of a group for
// what their shared agent does for them.
func (p payer) owner() string { return cmp.Or(p.person, p.root.OwnerID()) }

// called is what people call the payer.
func (p payer) called() string {
	if name := connectors.OneLine(p.root.Name, 60); name != "" {
		return "the agent " + name
	}
	if owner := p.root.OwnerID(); p.root.Foreground() && owner != "" {
		return "the agent of " + owner
	}
	return "the agent " + string(p.id)
}

// payer finds who pays for the calls of an agent. A call without an agent, and one of
// a deleted agent, still counts on the budgets of all.
func (l *Limiter) payer(ctx context.Context, id claybot.AgentID) (payer, error) {
	d, err := l.cfg.Agents.IndexedDescriptor(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return payer{id: id}, nil
	}
	if err != nil {
		return payer{id: id}, err
	}
	if d.Root == "" {
		return payer{id: id, root: d}, nil
	}
	root, err := l.cfg.Agents.IndexedDescriptor(ctx, d.Root)
	if errors.Is(err, storage.ErrNotFound) {
		return payer{id: d.Root, root: d}, nil
	}
	return payer{id: d.Root, root: root}, err
}

// applicable are the budgets that a call belongs to.
type applicable struct {
	levels []storage.Level
	names  map[string]string // for the payer, by key
	given  map[string]bool   // the keys of budgets that are a Default
	payer  payer
}

// levels returns the budgets that a call belongs to. The error is a *llm.LimitError
// where the limit of one is unknown.
func (l *Limiter) levels(ctx context.Context, c llm.Charge) (applicable, error) {
	rules, flows := l.cfg.Rules(), l.cfg.Runs.Budgets(c.Run)
	if len(rules)+len(flows) == 0 {
		return applicable{}, nil
	}
	who, err := l.payer(ctx, c.Agent)
	if err != nil {
		return applicable{}, err
	}
	run := l.cfg.Runs.Root(c.Run)
	if who.root.Shared() {
		if who.person, err = l.cfg.Runs.Owner(ctx, run); err != nil {
			return applicable{}, err
		}
	}
	now := l.now()
	on := applicable{names: make(map[string]string), given: make(map[string]bool), payer: who}
	for _, r := range rules {
		if !l.matches(r.Match, who.root) {
			continue
		}
		level, name, ok := l.level(r, who, run, now)
		if ok && r.Fault != "" {
			return applicable{}, l.refusal(texts.Of(ctx), who, r.Fault)
		}
		if _, twice := on.names[level.Key]; ok && !twice {
			on.levels, on.names[level.Key], on.given[level.Key] = append(on.levels, level), name, r.Default
		}
	}
	for _, b := range flows {
		for _, level := range levelsOf(b, now) {
			if _, twice := on.names[level.Key]; !twice { // the parts of one message may have met two versions of the file
				on.levels, on.names[level.Key] = append(on.levels, level), level.Name
			}
		}
	}
	return on, nil
}

// flowMatch begins the Match in the key of the budget of a run of a workflow.
const flowMatch = "flow:"

// levelsOf are the budgets of a run of a workflow. They are hard.
func levelsOf(b claybot.RunBudget, now time.Time) (all []storage.Level) {
	for _, of := range []struct {
		unit  storage.Unit
		limit int64
	}{{storage.UnitMicroUSD, b.MicroUSD}, {storage.UnitTokens, b.Tokens}} {
		if of.limit > 0 {
			r := Rule{Per: PerRun, Every: EveryRun, Unit: of.unit, Limit: of.limit, Hard: true, Match: flowMatch + b.Flow}
			all = append(all, storage.Level{
				Key: r.key(string(b.Run), now), Period: r.period(now), Unit: r.Unit, Limit: r.Limit, Hard: true, Name: "the budget of a run of " + b.Flow,
			})
		}
	}
	return all
}

// ofFlow reports whether a budget is that of a run of a workflow, by its key.
func ofFlow(key string) bool {
	return strings.HasPrefix(key, PerRun+"/") && strings.Contains(key, "/"+flowMatch)
}

// Refused returns why nothing may be spent for an agent because a budget is not
// configured correctly; empty when all are.
func (l *Limiter) Refused(ctx context.Context, id claybot.AgentID) string {
	_, err := l.levels(ctx, llm.Charge{Agent: id})
	if limit, ok := errors.AsType[*llm.LimitError](err); ok {
		return limit.Text
	}
	return ""
}

// now is the present time in the zone of the users.
func (l *Limiter) now() time.Time { return time.Now().In(l.cfg.Zone()) }

// matches reports whether a rule with a Match applies to a payer.
func (l *Limiter) matches(match string, d claybot.Descriptor) bool {
	if match == "" {
		return true
	}
	if d.Type == "" {
		return false
	}
	all := []string{l.cfg.Profile(d), d.Connector, d.Connector + ":" + d.ChannelID}
	if l.cfg.Former != nil {
		for _, id := range l.cfg.Former(d.Connector, d.ChannelID) {
			all = append(all, d.Connector+":"+id)
		}
	}
	if !d.Foreground() {
		all = append(all, string(d.Type))
	}
	return slices.Contains(all, match)
}

// level returns the budget of a rule that a call belongs to and its name for the payer;
// false where the rule has none for it.
func (l *Limiter) level(r Rule, who payer, run claybot.RunID, now time.Time) (level storage.Level, name string, ok bool) {
	level = storage.Level{Unit: r.Unit, Limit: r.Limit, Hard: r.Hard}
	of := ""
	switch r.per() {
	case PerAgent:
		of, level.Name, name = string(who.id), "the budget of "+who.called(), "the budget of this agent"
	case PerOwner:
		if owner := who.owner(); owner != "" {
			of = l.cfg.People.Identities(owner)[0]
		}
		level.Name, name = "the budget of "+of, "your budget"
	case PerChannel:
		if who.root.Connector != "" {
			of = who.root.Connector + ":" + who.root.ChannelID
		}
		level.Name, name = "the budget of the channel "+of, "the budget of this channel"
	case PerTask:
		if who.root.Type == claybot.AgentCron {
			of = who.root.UID
		}
		level.Name, name = "the budget of the task "+cmp.Or(connectors.OneLine(who.root.Name, 60), of), "the budget of this task"
	case PerToken:
		if slices.Contains(tokenOwners(r.Token), who.root.OwnerID()) {
			of = r.Token
		}
		level.Name, name = "the budget of the token "+r.Token, "the budget of the token "+r.Token
	case PerRun:
		of, level.Name, name = string(run), "the budget of one run", "the budget of one run"
	case PerAll:
		of, level.Name, name = "-", "the budget of all agents", "the budget of all agents"
	}
	switch {
	case r.per() == PerRun:
	case r.Every == EveryDay:
		level.Name, name = level.Name+now.Format(" for 2 Jan 2006"), name+" for today"
	case r.Every == EveryMonth:
		level.Name, name = level.Name+now.Format(" for January 2006"), name+" for this month"
	}
	level.Key, level.Period = r.key(of, now), r.period(now)
	return level, name, of != ""
}
