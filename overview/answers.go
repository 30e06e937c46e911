package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Answer returns the answer to a user's chat command. The agent need not exist yet.
func (o *Answers) Answer(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (string, error) {
	v := texts.Of(ctx)
	switch m.Command {
	case "start":
		return v.Greeting(), nil
	case "status":
		return o.agentStatus(ctx, agent, m), nil
	case "why":
		r, err := o.lastReceipt(ctx, agent)
		if errors.Is(err, storage.ErrNotFound) {
			return v.Say(texts.NoMessage), nil
		}
		if err != nil {
			return "", fmt.Errorf("read the last receipt: %w", err)
		}
		text, stopped := textWhy(v, r, o.hindrance(agent)), o.Stopped(agent)
		if r.Run == nil && stillOpen(r) && stopped != "" && o.People.ReadsCauses(agent, m) {
			text += "\n\n" + stopped
		}
		if r.Run != nil && r.Run.Error != nil && o.People.ReadsCauses(agent, m) {
			if cause := o.Worker.AdviceOn(v, agent, &runs.Error{Code: r.Run.Error.Code, Text: r.Run.Error.Text}); cause != "" {
				text += "\n\n" + cause
			}
		}
		return text, nil
	case "context":
		return o.Worker.ContextSize(ctx, agent)
	case "tasks":
		return o.tasks(ctx, agent)
	case "usage":
		return o.usage(ctx, agent)
	case "privacy":
		return o.privacy(ctx, agent)
	case "plan":
		return v.In(texts.PlanWhat), nil
	case connectors.Business:
		return v.In(texts.NoBusiness), nil
	case connectors.Unknown:
		return v.UnknownCommand(connectors.Named(m.Text)), nil
	}
	skills, err := o.Skills(ctx, agent)
	if err != nil {
		o.Log.Warn("failed to read the commands of skills", "agent", agent.ID, "err", err)
	}
	return v.Help(o.mayOrder(agent, m), skills), nil
}

// mayOrder returns the role whose commands the author of m may use here: those of an operator in a
// direct chat, and those of an owner where roles are changed.
func (o *Answers) mayOrder(agent claybot.Agent, m claybot.AgentMessage) storage.Role {
	switch {
	case !o.People.ReadsCauses(agent, m):
		return storage.RoleUser
	case o.People.OrdersRoles(agent.Descriptor.Connector):
		return o.People.RoleOfPerson(agent.Descriptor.OwnerID())
	}
	return storage.RoleOperator
}

// agentStatus returns what the author of m may see: their own agent and whether claybot
// works. Only an operator who alone reads the answer sees the id of the agent.
func (o *Answers) agentStatus(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) string {
	v := texts.Of(ctx)
	doing, model := o.doing(ctx, agent, m.Speaker(agent.Descriptor)), o.Profiles.Of(agent.ID, agent.Descriptor).Model
	if why := o.Stopped(agent); why != "" && o.People.ReadsCauses(agent, m) {
		doing += "\n\n" + why
	}
	if off := o.SwitchedOff(ctx, agent); off != nil {
		why := cmp.Or(off.Say, v.Failed(off.Code))
		if off.Say == "" && o.People.ReadsCauses(agent, m) {
			why += "\n\n" + o.Worker.AdviceOn(v, agent, off)
		}
		if doing = why + "\n\n" + doing; strings.HasSuffix(doing, v.In(texts.Idle)) { // no message is being handled
			doing = why
		}
		if off.Code == runs.CodeOff {
			model += v.In(texts.SwitchedOff)
		}
	}
	var b strings.Builder
	b.WriteString(doing + "\n\n- " + v.Say(texts.ModelIs, v.In(model)) + "\n")
	for _, c := range o.monitor.health() {
		if c.Name == agent.Descriptor.Connector {
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, v.State(c.State))
		}
	}
	if o.People.ReadsCauses(agent, m) {
		fmt.Fprintf(&b, "- agent: `%s`\n", agent.ID)
		for _, line := range o.findingLines(ctx) {
			b.WriteString("- " + line + "\n")
		}
	}
	limits, err := o.Profiles.Permissions(ctx, agent)
	if err != nil {
		return b.String() + "- " + v.In(texts.NoLimits)
	}
	for _, line := range v.Limits(limits) {
		b.WriteString("- " + line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mostFindings is how many findings /status lists.
const mostFindings = 5

// gravity orders findings: first what does not work.
func gravity(f Finding) int { return slices.Index([]string{LevelProblem, LevelWarning}, f.Level) }

// findingLines are what operators read in /status of what does not work.
func (o *Answers) findingLines(ctx context.Context) (lines []string) {
	all, err := o.monitor.Findings(ctx)
	if err != nil {
		o.Log.Warn("failed to list what does not work for /status", "err", err)
	}
	v := texts.Of(ctx)
	all = faults(all)
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(gravity(a), gravity(b)) })
	for _, f := range all[:min(len(all), mostFindings)] {
		lines = append(lines, v.FindingLine(f.What, f.Text, f.Next, f.Code))
	}
	if more := len(all) - len(lines); more > 0 {
		lines = append(lines, v.Say(texts.MoreFindings, more))
	}
	return lines
}

// privacy answers /privacy.
func (o *Answers) privacy(ctx context.Context, agent claybot.Agent) (string, error) {
	p, err := o.Privacy(ctx, agent.ID)
	if errors.Is(err, storage.ErrNotFound) { // nobody has written to it yet
		p, err = Privacy{Readers: texts.Of(ctx).Readers(o.People.AudienceOf(agent.Descriptor, claybot.Route{}))}, nil
	}
	if err != nil {
		return "", err
	}
	alone := o.People.AudienceOf(agent.Descriptor, claybot.Route{}).Place == ""
	return texts.Of(ctx).Privacy(p.Readers, alone, p.Reads, p.Asks, p.Approved), nil
}

// tasks answers /tasks with the work in progress and the scheduled tasks of the user. Where
// others read as well, it lists only tasks that answer there.
func (o *Answers) tasks(ctx context.Context, agent claybot.Agent) (string, error) {
	here := o.People.AudienceOf(agent.Descriptor, claybot.Route{}).Place
	v := texts.Of(ctx)
	var lines []string
	children, err := o.Index.Children(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("list subagents: %w", err)
	}
	for _, c := range children {
		if !c.Busy {
			continue
		}
		info, err := o.Subagents.Info(ctx, c)
		if err != nil {
			return "", err
		}
		lines = append(lines, "- "+v.SubagentLine(info.Name, info.State != string(claybot.RunRunning)))
	}
	reminders, err := o.Later.Reminders(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("list reminders: %w", err)
	}
	for _, r := range reminders[:min(len(reminders), 20)] {
		lines = append(lines, "- "+v.Say(texts.ReminderLine, v.When(r.Due), connectors.Literal(r.Note, 80)))
	}
	for _, c := range o.Connectors.All() {
		cron, ok := c.(scheduled)
		if !ok || c.Name() != string(claybot.AgentCron) {
			continue
		}
		tasks, _, err := cron.Tasks(ctx)
		if err != nil {
			return "", fmt.Errorf("list tasks: %w", err)
		}
		for _, t := range tasks {
			if slices.Contains(o.People.Identities(agent.Descriptor.OwnerID()), t.Owner) && (here == "" || t.Route == here) {
				lines = append(lines, taskLine(v, t))
			}
		}
	}
	if len(lines) == 0 {
		return v.In(texts.NoTasks), nil
	}
	return strings.Join(lines, "\n"), nil
}

// scheduled is implemented by a connector that lists tasks.
type scheduled interface {
	Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
}

func taskLine(v texts.Voice, t connectors.Task) string {
	name := connectors.Literal(cmp.Or(t.Name, t.Slug), 80)
	if len(t.Next) == 0 {
		return "- " + v.Say(texts.TaskOff, name)
	}
	return "- " + v.Say(texts.TaskNext, name, v.When(claybot.At(t.Next[0])))
}

// doing describes what an agent does now and what the user, by owner id, can do about it.
func (o *Answers) doing(ctx context.Context, agent claybot.Agent, by string) string {
	v := texts.Of(ctx)
	if since, ok := o.unusableSince(ctx, agent.Descriptor); ok {
		return v.Unusable(since)
	}
	run, q, asks, err := o.Questions.Ledger.PausedRun(ctx, agent.ID)
	switch {
	case err == nil && run.ID == "" && o.Stopped(agent) != "":
		return v.In(texts.AgentStopped)
	case o.Inboxes.Busy(agent.ID), err == nil && run.State == claybot.RunRunning:
		return v.In(texts.AtWork)
	case err != nil:
		return v.In(texts.NoSight)
	case asks && o.Questions.Respondents.May(q, agent.Descriptor, by) && !q.Explicit:
		return v.Say(texts.AwaitsAnswer, v.Headline(q))
	case asks && o.Questions.Respondents.May(q, agent.Descriptor, by):
		return v.Say(texts.AwaitsDecision, v.Headline(q), v.HowToAnswer(q, agent.Descriptor.Connector))
	case run.State == claybot.RunAwaiting && run.Awaiting != nil:
		return v.Say(texts.Awaits, v.WaitsFor(run))
	}
	waiting, err := o.Inbox.Waiting(ctx, agent.ID, maxInboxView)
	switch {
	case err != nil || len(waiting) == 0:
		return v.In(texts.Idle)
	}
	return v.Count(int64(len(waiting)), texts.NextUp)
}

// hindrance is what hinders an agent, as far as this member knows.
func (o *Answers) hindrance(agent claybot.Agent) Hindrance {
	_, faulty := o.Worker.Faults.At(agent.Descriptor.Key())
	switch {
	case faulty:
		return Unusable
	case o.Stopped(agent) != "":
		return Stopped
	}
	return Free
}

// unusableSince returns since when the agent of d is unusable, as far as this member
// knows; ok is false if it is usable.
func (o *Answers) unusableSince(ctx context.Context, d claybot.Descriptor) (since claybot.Time, ok bool) {
	if x, ok := o.Worker.Faults.At(d.Key()); ok {
		return claybot.At(x.Since), true
	}
	list, err := o.Parking.ParkedOf(ctx, d.Key(), 1)
	if err != nil || len(list) == 0 || list[0].Cause == storage.ParkedUnapproved || list[0].Cause == questions.ErrUnheard.Error() { // approved a moment ago, or a recording is being transcribed
		return 0, false
	}
	return list[0].At, true
}

// lastReceipt returns the receipt of the newest message of an agent's user, parked or
// not, or storage.ErrNotFound.
func (o *Answers) lastReceipt(ctx context.Context, agent claybot.Agent) (storage.Receipt, error) {
	list, err := o.Parking.ParkedOf(ctx, agent.Descriptor.Key(), storage.MaxParkedAgent)
	if err != nil {
		return storage.Receipt{}, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		if m := list[i].Message; m.Type == claybot.MessageUser {
			return o.resent(ctx, o.Inbox.Receipt, m.ID)
		}
	}
	return o.resent(ctx, func(ctx context.Context, _ claybot.MessageID) (storage.Receipt, error) {
		return o.Inbox.LastReceipt(ctx, agent.ID)
	}, "")
}
