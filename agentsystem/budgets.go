package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// Whom a budget is for, and how often it begins anew.
const (
	PerAgent   = "agent"
	PerOwner   = "owner"   // the person, whatever he writes from
	PerChannel = "channel" // of a connector
	PerTask    = "task"    // of the schedule
	PerRun     = "run"
	PerAll     = "all"

	EveryRun    = "run"
	EveryDay    = "day"   // in the zone of the people
	EveryMonth  = "month" // likewise
	EveryAlways = storage.PeriodAlways
)

// A BudgetRule is a budget as the configuration has it. Subagents count as the
// agent and the run that their chain begins with.
type BudgetRule struct {
	Per   string
	Every string
	Unit  storage.Unit
	Limit int64
	Hard  bool
	// Match narrows it to agents of a profile, a connector, "connector:channel",
	// cron or heartbeat; empty: all.
	Match string
	// Fault says what is wrong with the budget: its limit is not known. Those whom it
	// is for may spend nothing.
	Fault string
}

// A PurseConfig is what a Purse needs.
type PurseConfig struct {
	Store storage.Budgets
	// Rules are asked with every call, so that a change counts at once.
	Rules func() []BudgetRule
	// Operators are who may extend a budget in a chat, as "connector/userId";
	// those on the page and the command line may anyway. nil: only those.
	Operators func() []string
}

// A Purse pays for the calls of models from the budgets of the configuration.
// It is safe for concurrent use.
type Purse struct {
	PurseConfig
	system *AgentSystem

	mu     sync.Mutex
	freed  chan struct{}   // closed when there may be more room than before
	warned map[string]bool // by key, what this process has logged; true: it is told as well
}

var _ llm.Purse = (*Purse)(nil)

const (
	// freeTime is how long a call waits for others to give back what they have
	// set aside and do not need.
	freeTime = 2 * time.Minute
	// freeElsewhere is how often it looks whether another node has given some back.
	freeElsewhere = 2 * time.Second
	// warnAt is the part of a budget, in percent, after which somebody is told.
	warnAt = 80
	// maxWarned bounds what is remembered of warnings; the store knows all.
	maxWarned = 10_000
)

// NewPurse makes the purse of a system. Of a process that has its store for itself,
// Recover must be called before the first call is paid; of others, Follow is to run
// beside the system.
func NewPurse(s *AgentSystem, cfg PurseConfig) *Purse {
	return &Purse{PurseConfig: cfg, system: s, freed: make(chan struct{}), warned: make(map[string]bool)}
}

// Recover books what processes had set aside that are not there any more.
func (p *Purse) Recover(ctx context.Context) error {
	n, err := p.Store.Abandoned(ctx, p.system.Members.Node())
	if n > 0 {
		p.system.Log.Info("calls of a dead process were booked at their most", "count", n)
		p.free() // it may be less
	}
	return err
}

// Follow recovers whenever a node has gone, until ctx is done. A process that has
// the store for itself needs it not. It begins when the node has joined.
func (p *Purse) Follow(ctx context.Context) error {
	m := p.system.Members
	if m.IsAlone() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for ctx.Err() == nil {
		changed := m.Changed()
		var later <-chan time.Time
		if m.Term() != nil {
			if err := p.Recover(ctx); err != nil && ctx.Err() == nil {
				p.system.Log.Warn("cannot book the calls of nodes that have gone; trying again", "err", err)
				later = time.After(freeElsewhere)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-later:
		}
	}
	return context.Cause(ctx)
}

// Reserve implements llm.Purse. A call for which there is room as soon as others
// give back what they do not need waits for that, a while.
func (p *Purse) Reserve(ctx context.Context, c llm.Charge) (llm.Reserved, error) {
	levels, own, payer, err := p.levels(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(levels) == 0 {
		return unpaid{}, nil
	}
	r := storage.Reservation{
		ID: newID(), Run: c.Run, Levels: levels,
		Amount: storage.Amount{Tokens: c.Tokens, MicroUSD: c.CostMicroUSD},
	}
	held := &heldMoney{purse: p, id: r.ID, payer: payer, own: own}
	for _, l := range levels {
		held.binding = held.binding || l.Hard
		if !c.Priced && l.Unit == storage.UnitMicroUSD {
			if l.Hard {
				return nil, llm.PriceMissing(c.Model, own[l.Key])
			}
			r.Amount.Unpriced = 1
		}
	}
	patience := time.NewTimer(freeTime)
	defer patience.Stop()
	for {
		p.mu.Lock()
		freed := p.freed
		p.mu.Unlock()
		err := p.reserve(ctx, r)
		over, full := errors.AsType[*storage.OverBudgetError](err)
		var elsewhere <-chan time.Time
		switch {
		case err == nil:
			return held, nil
		case !full && (p.system.Members.IsAlone() || !again(err)):
			return nil, fmt.Errorf("set money aside: %w", err)
		case full && over.Left()+over.Reserved < over.Asked:
			return nil, limitError(over, own[over.Key], c)
		case !p.system.Members.IsAlone():
			elsewhere = time.After(freeElsewhere)
		}
		select {
		case <-freed:
		case <-elsewhere:
		case <-patience.C:
			if !full {
				return nil, fmt.Errorf("set money aside: %w", err)
			}
			return nil, limitError(over, own[over.Key], c)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve sets money aside for this node. Between two terms there is none: whoever
// looks for what dead nodes left would take it for such.
func (p *Purse) reserve(ctx context.Context, r storage.Reservation) error {
	if r.Node = p.system.Members.Node(); r.Node == "" && !p.system.Members.IsAlone() {
		return fmt.Errorf("this node is not there at the moment: %w", storage.ErrBusy)
	}
	return p.Store.Reserve(ctx, r)
}

// unpaid is what no budget pays for.
type unpaid struct{}

func (unpaid) Settle(context.Context, claybot.Usage) error { return nil }
func (unpaid) Binding() bool                               { return false }

// heldMoney is money that was set aside for one call.
type heldMoney struct {
	purse   *Purse
	id      string
	payer   payer
	own     map[string]string // what the payer calls its budgets, by key
	binding bool
}

// Binding implements llm.Reserved.
func (h *heldMoney) Binding() bool { return h.binding }

// Settle implements llm.Reserved.
func (h *heldMoney) Settle(ctx context.Context, u claybot.Usage) error {
	p := h.purse
	took := storage.Amount{Tokens: u.Input + u.Output, MicroUSD: u.CostMicroUSD, Unpriced: min(u.Unpriced, 1)}
	list, err := p.book(ctx, h.id, took)
	if err != nil {
		p.system.Log.Error("the cost of a call is not booked; it counts as it was set aside", "agent", h.payer.id, "err", err)
		return err
	}
	p.free()
	for _, b := range list {
		p.warn(ctx, h.payer, h.own[b.Key], b)
	}
	return nil
}

// bookTime is how long the cost of a call is booked again and again in a store that
// does not answer.
const bookTime = 30 * time.Second

// book enters what a call took; to enter it again changes nothing.
func (p *Purse) book(ctx context.Context, id string, took storage.Amount) ([]storage.Budget, error) {
	for until := time.Now().Add(bookTime); ; pause(ctx, time.Second) {
		list, err := p.Store.Book(ctx, id, took)
		if err == nil || p.system.Members.IsAlone() || !again(err) || ctx.Err() != nil || time.Now().After(until) {
			return list, err
		}
	}
}

// free wakes the calls that wait for room.
func (p *Purse) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.freed)
	p.freed = make(chan struct{})
}

// warn tells once that most of a budget is spent, and once that one is which
// stops nothing. What could not be told is told with the next call.
func (p *Purse) warn(ctx context.Context, who payer, name string, b storage.Budget) {
	limit := b.Limit + b.Extension
	part := int64(warnAt)
	switch {
	case b.Spent*100 < limit*part || b.Spent == 0:
		return
	case !b.Hard && b.Spent >= limit:
		part = 100
	}
	key := fmt.Sprintf("budget/%s/%d", b.Key, part)
	told, logged := p.known(key)
	if told {
		return
	}
	if !logged {
		p.system.Log.Warn("a budget is nearly spent", "budget", b.Key, "spent", b.Spent, "limit", limit, "unit", string(b.Unit), "agent", who.id)
	}
	text := upper(cmp.Or(name, b.Name)) + ": " + llm.Standing(b.Unit == storage.UnitTokens, b.Spent, limit) + "."
	if b.Hard {
		text += " At the limit I stop and ask."
	} else {
		text += " This is only a warning; I go on."
	}
	err := p.system.tryTellOwner(ctx, claybot.Agent{ID: who.id, Descriptor: claybot.Descriptor{Owner: who.root.OwnerID()}}, key, text)
	if err == nil {
		p.mu.Lock()
		p.warned[key] = true
		p.mu.Unlock()
	} else if !logged {
		p.system.Log.Warn("nobody could be told of a budget; the next call tries again", "budget", b.Key, "err", err)
	}
}

// known reports what was done about a warning, which counts as logged then.
func (p *Purse) known(key string) (told, logged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	told, logged = p.warned[key]
	if len(p.warned) >= maxWarned {
		clear(p.warned)
	}
	p.warned[key] = told
	return told, logged
}

// A payer is the agent that a call is made for and the one that pays.
type payer struct {
	id   claybot.AgentID    // that pays: the root of its chain
	root claybot.Descriptor // of the same
}

// levels are the budgets that a call belongs to, what the payer calls them, by key,
// and who that is.
func (p *Purse) levels(ctx context.Context, c llm.Charge) ([]storage.Level, map[string]string, payer, error) {
	rules := p.Rules()
	if len(rules) == 0 {
		return nil, nil, payer{}, nil
	}
	who, err := p.payer(ctx, c.Agent)
	if err != nil {
		return nil, nil, who, err
	}
	run := p.system.turns.of(c.Run).root(c.Run)
	now := time.Now().In(p.system.zone())
	var levels []storage.Level
	own := make(map[string]string)
	for _, r := range rules {
		if !p.matches(r.Match, who.root) {
			continue
		}
		l, name, ok := p.level(r, who, run, now)
		if ok && r.Fault != "" {
			return nil, nil, who, p.system.refusal(who, r.Fault)
		}
		if _, twice := own[l.Key]; ok && !twice {
			levels, own[l.Key] = append(levels, l), name
		}
	}
	return levels, own, who, nil
}

// Refused returns why nothing may be spent for an agent because a budget is not
// configured correctly; empty when all are.
func (p *Purse) Refused(ctx context.Context, id claybot.AgentID) string {
	_, _, _, err := p.levels(ctx, llm.Charge{Agent: id})
	if limit, ok := errors.AsType[*llm.LimitError](err); ok {
		return limit.Text
	}
	return ""
}

// payer finds who pays for an agent. A call for nobody, and one for an agent that
// is gone, still counts on the budgets of all.
func (p *Purse) payer(ctx context.Context, id claybot.AgentID) (payer, error) {
	d, err := p.system.Index.IndexedDescriptor(ctx, id)
	if err != nil {
		return payer{id: id}, ignore(err, storage.ErrNotFound)
	}
	if d.Root == "" {
		return payer{id, d}, nil
	}
	root, err := p.system.Index.IndexedDescriptor(ctx, d.Root)
	if errors.Is(err, storage.ErrNotFound) {
		return payer{d.Root, d}, nil
	}
	return payer{d.Root, root}, err
}

// matches reports whether a budget is for a payer.
func (p *Purse) matches(match string, d claybot.Descriptor) bool {
	if match == "" {
		return true
	}
	if d.Type == "" {
		return false
	}
	all := []string{p.system.Profile(d).Name, d.Connector, d.Connector + ":" + d.ChannelID}
	if !d.Foreground() {
		all = append(all, string(d.Type))
	}
	return slices.Contains(all, match)
}

// level is the budget of a rule that a call belongs to, and what the payer calls it;
// false for none.
func (p *Purse) level(r BudgetRule, who payer, run claybot.RunID, now time.Time) (l storage.Level, own string, ok bool) {
	l = storage.Level{Unit: r.Unit, Limit: r.Limit, Hard: r.Hard}
	of := ""
	switch r.per() {
	case PerAgent:
		of, l.Name, own = string(who.id), "the budget of "+who.called(), "the budget of this agent"
	case PerOwner:
		if owner := who.root.OwnerID(); owner != "" {
			of = p.system.people(owner)[0]
		}
		l.Name, own = "the budget of "+of, "your budget"
	case PerChannel:
		if who.root.Connector != "" {
			of = who.root.Connector + ":" + who.root.ChannelID
		}
		l.Name, own = "the budget of the channel "+of, "the budget of this channel"
	case PerTask:
		if who.root.Type == claybot.AgentCron {
			of = who.root.UID
		}
		l.Name, own = "the budget of the task "+cmp.Or(connectors.OneLine(who.root.Name, 60), of), "the budget of this task"
	case PerRun:
		of, l.Name, own = string(run), "the budget of one run", "the budget of one run"
	case PerAll:
		of, l.Name, own = "-", "the budget of all agents", "the budget of all agents"
	}
	switch {
	case r.per() == PerRun:
	case r.Every == EveryDay:
		l.Name, own = l.Name+now.Format(" for 2 Jan 2006"), own+" for today"
	case r.Every == EveryMonth:
		l.Name, own = l.Name+now.Format(" for January 2006"), own+" for this month"
	}
	l.Key, l.Period = r.key(of, now), r.period(now)
	return l, own, of != ""
}

// per is whom a budget is for.
func (r BudgetRule) per() string {
	if r.Every == EveryRun {
		return PerRun
	}
	return r.Per
}

// period names the time that a budget is for, of which now is a moment.
func (r BudgetRule) period(now time.Time) string {
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

// key is that of the budget of one agent, person, channel, task or run.
func (r BudgetRule) key(of string, now time.Time) string {
	key := strings.Join([]string{r.per(), of, r.period(now), string(r.Unit)}, "/")
	if !r.Hard {
		key += "/warn"
	}
	if r.Match != "" {
		key += "/" + r.Match
	}
	return key
}

// Deciders are who may extend a budget in a chat, as "connector/userId", at least
// one, whether the own person of an agent is among them, and whether no other person
// is.
func (p *Purse) Deciders(a claybot.Agent) (operators []string, own, only bool) {
	if p.Operators != nil {
		operators = slices.Clone(p.Operators())
	}
	who := a.Descriptor.OwnerID()
	is := func(o string) bool { return slices.Contains(p.system.people(o), who) }
	own = slices.ContainsFunc(operators, is)
	switch {
	case len(operators) == 0: // without names, the question would be for the own person
		own = slices.Contains(seatsOfOperators, who)
		return slices.Clone(seatsOfOperators), own, own
	case !own && slices.Contains(seatsOfOperators, who):
		return append(operators, who), true, false
	}
	return operators, own, !slices.ContainsFunc(operators, func(o string) bool { return !is(o) })
}

// seatsOfOperators are the chats that only an operator can open.
var seatsOfOperators = []string{"web/" + operatorName, "terminal/" + operatorName}
