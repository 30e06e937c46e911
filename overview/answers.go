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
	switch m.Command {
	case "start":
		return texts.Greeting(), nil
	case "status":
		return o.agentStatus(ctx, agent, m), nil
	case "why":
		r, err := o.lastReceipt(ctx, agent)
		if errors.Is(err, storage.ErrNotFound) {
			return "There is no message of yours yet.", nil
		}
		if err != nil {
			return "", fmt.Errorf("read the last receipt: %w", err)
		}
		_, faulty := o.Worker.Faults.At(agent.Descriptor.Key())
		text := textWhy(r, faulty, o.Zone())
		if r.Run != nil && r.Run.Error != nil && o.People.ReadsCauses(agent, m) {
			if cause := o.Worker.AdviceOn(agent, &runs.Error{Code: r.Run.Error.Code, Text: r.Run.Error.Text}); cause != "" {
				text += "\n\n" + cause
			}
		}
		return text, nil
	case "context":
		return o.Worker.ContextSize(ctx, agent)
	case "tasks":
		return o.tasks(ctx, agent)
	case "privacy":
		return o.privacy(ctx, agent)
	case "plan":
		return texts.PlanWhat, nil
	case connectors.Unknown:
		return texts.UnknownCommand(m.Text), nil
	}
	return texts.Help(), nil
}

// agentStatus returns what the author of m may see: their own agent and whether claybot
// works.
func (o *Answers) agentStatus(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) string {
	doing, model := o.doing(ctx, agent), o.Profiles.Of(agent.ID, agent.Descriptor).Model
	if off := o.SwitchedOff(ctx, agent); off != nil {
		why := cmp.Or(off.Say, texts.SentenceFailed(off.Code))
		if off.Say == "" && o.People.ReadsCauses(agent, m) {
			why += "\n\n" + o.Worker.AdviceOn(agent, off)
		}
		if doing = why + "\n\n" + doing; strings.HasSuffix(doing, texts.Idle) { // no message is being handled
			doing = why
		}
		if off.Code == runs.CodeOff {
			model += ", switched off"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n- model: %s\n", doing, model)
	for _, c := range o.monitor.health() {
		if c.Name == agent.Descriptor.Connector {
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.State)
		}
	}
	fmt.Fprintf(&b, "- agent: `%s`", agent.ID)
	limits, err := o.Profiles.Permissions(ctx, agent)
	if err != nil {
		return b.String() + "\n- " + texts.NoLimits
	}
	for _, line := range texts.Limits(limits) {
		b.WriteString("\n- " + line)
	}
	return b.String()
}

// privacy answers /privacy.
func (o *Answers) privacy(ctx context.Context, agent claybot.Agent) (string, error) {
	p, err := o.Privacy(ctx, agent.ID)
	if errors.Is(err, storage.ErrNotFound) { // nobody has written to it yet
		p, err = Privacy{Readers: texts.Readers(o.People.AudienceOf(agent.Descriptor, claybot.Route{}))}, nil
	}
	if err != nil {
		return "", err
	}
	alone := o.People.AudienceOf(agent.Descriptor, claybot.Route{}).Place == ""
	return texts.Privacy(p.Readers, alone, p.Reads, p.Asks, p.Approved), nil
}

// tasks answers /tasks with the work in progress and the scheduled tasks of the user. Where
// others read as well, it lists only tasks that answer there.
func (o *Answers) tasks(ctx context.Context, agent claybot.Agent) (string, error) {
	here := o.People.AudienceOf(agent.Descriptor, claybot.Route{}).Place
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
		lines = append(lines, fmt.Sprintf("- subagent %s (`%s`): %s", connectors.OneLine(info.Name, 80), c.ID, info.State))
	}
	reminders, err := o.Later.Reminders(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("list reminders: %w", err)
	}
	for _, r := range reminders[:min(len(reminders), 20)] {
		lines = append(lines, fmt.Sprintf("- reminder at %s: %s", r.Due.Time().UTC().Format("2006-01-02 15:04 MST"), connectors.OneLine(r.Note, 80)))
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
				lines = append(lines, taskLine(t))
			}
		}
	}
	if len(lines) == 0 {
		return "No subagent is running, and nothing is scheduled.", nil
	}
	return strings.Join(lines, "\n"), nil
}

// scheduled is implemented by a connector that lists tasks.
type scheduled interface {
	Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
}

func taskLine(t connectors.Task) string {
	next := "does not run"
	if len(t.Next) > 0 {
		next = "next at " + t.Next[0].Format("2006-01-02 15:04 MST")
	}
	return fmt.Sprintf("- task %s (`%s`): %s", connectors.OneLine(t.Name, 80), t.Slug, next)
}

// doing describes what an agent does now and what the user can do about it.
func (o *Answers) doing(ctx context.Context, agent claybot.Agent) string {
	if since, ok := o.unusableSince(ctx, agent.Descriptor); ok {
		return texts.Unusable(since, o.Zone())
	}
	run, q, asks, err := o.Questions.Ledger.PausedRun(ctx, agent.ID)
	switch {
	case o.Inboxes.Busy(agent.ID), err == nil && run.State == claybot.RunRunning:
		return "I am at work on something; /stop ends it."
	case err != nil:
		return "I cannot look at what I am doing right now."
	case asks && o.Questions.Respondents.May(q, agent.Descriptor, agent.Descriptor.OwnerID()) && !q.Explicit:
		return "I am waiting for your answer to: " + texts.Headline(q) + "\n/stop ends it."
	case asks && o.Questions.Respondents.May(q, agent.Descriptor, agent.Descriptor.OwnerID()):
		return "I am waiting for your decision: " + texts.Headline(q) + "\n" + texts.HowToAnswer(q, agent.Descriptor.Connector) + " /stop ends it."
	case run.State == claybot.RunAwaiting && run.Awaiting != nil:
		return "I am waiting for " + texts.WaitsFor(run, o.Zone()) + ".\n/stop ends it."
	}
	waiting, err := o.Inbox.Waiting(ctx, agent.ID, maxInboxView)
	switch {
	case err != nil || len(waiting) == 0:
		return texts.Idle
	case len(waiting) == 1:
		return "I am about to take up your message."
	}
	return fmt.Sprintf("I am about to take up %d messages.", len(waiting))
}

// unusableSince returns since when the agent of d is unusable, as far as this member
// knows; ok is false if it is usable.
func (o *Answers) unusableSince(ctx context.Context, d claybot.Descriptor) (since claybot.Time, ok bool) {
	if x, ok := o.Worker.Faults.At(d.Key()); ok {
		return claybot.At(x.Since), true
	}
	list, err := o.Parking.ParkedOf(ctx, d.Key(), 1)
	if err != nil || len(list) == 0 || list[0].Cause == questions.ErrUnheard.Error() { // a recording is being transcribed
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
			return o.Inbox.Receipt(ctx, m.ID)
		}
	}
	return o.Inbox.LastReceipt(ctx, agent.ID)
}
