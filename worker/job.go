package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A job is the shared state of one pass. Only the goroutine of the pass changes it.
type job struct {
	box      *inbox.AgentInbox
	agent    claybot.Agent
	profile  profiles.Profile
	run      claybot.Run
	messages []claybot.AgentMessage
	voice    func() texts.Voice          // for the reader of the run
	asked    map[string]claybot.Question // by the run, by id
	charges  Charges                     // of the run
	add      func(...claybot.Event)      // to what the run reports about itself
	broken   error                       // an error of the store, whatever the engine returned
	log      *slog.Logger
}

// deadline returns the latest end of the run: the profile's limit for one pass, or that
// of a message of the run.
func (j *job) deadline() time.Time {
	end := time.Now().Add(cmp.Or(j.profile.Deadline, defaultDeadline))
	for _, m := range j.messages {
		if m.Deadline != 0 && m.Deadline.Time().Before(end) {
			end = m.Deadline.Time()
		}
	}
	return end
}

// engine returns the name of the run's engine, which does not change with the
// configuration.
func (j *job) engine() string {
	return cmp.Or(j.run.Engine, engineFor(j.messages, j.profile)) // runs of older versions have none
}

// forgets reports whether the run sees nothing of earlier runs, and later runs nothing of it.
func (j *job) forgets() bool {
	return j.profile.Forget || slices.ContainsFunc(j.messages, func(m claybot.AgentMessage) bool { return m.Stateless })
}

// unsent reports whether what the agent says in the run is not sent where the run answers: the
// agent sends by its tools. Texts of other engines are not its own alone.
func (j *job) unsent() bool {
	return j.profile.Unsent && j.engine() == claybot.EngineReact && j.work().Route().Connector != ""
}

// Asked is an agent as the messages of a run want it to work.
func Asked(agent claybot.Agent, messages ...claybot.AgentMessage) claybot.Agent {
	for _, m := range messages {
		if m.As != nil {
			agent.State.Background = m.As
		}
	}
	return agent
}

// flows reports whether the run is of a workflow.
func (j *job) flows() bool {
	return slices.ContainsFunc(j.messages, func(m claybot.AgentMessage) bool { return m.Flow != nil })
}

// awaited reports whether another run waits for the end of this one.
func (j *job) awaited() bool {
	return slices.ContainsFunc(j.messages, func(m claybot.AgentMessage) bool { return m.Awaited != nil })
}

// undoes returns the run whose side effects this run undoes; empty for none.
func (j *job) undoes() claybot.RunID {
	for _, m := range j.messages {
		if m.Undo != nil {
			return m.Undo.Run
		}
	}
	return ""
}

// firing returns the cron instant of the run; nil for other runs.
func (j *job) firing() *claybot.Firing {
	for _, m := range j.messages {
		if m.Firing != nil {
			return m.Firing
		}
	}
	return nil
}

// newestOf returns the newest message of the run with a type; nil for none.
func (j *job) newestOf(typ claybot.MessageType) *claybot.AgentMessage {
	for _, m := range slices.Backward(j.messages) {
		if m.Type == typ {
			return &m
		}
	}
	return nil
}

func (j *job) work() runs.Work {
	return runs.Work{Pass: j, Agent: j.agent, Messages: j.messages, Add: j.add, Asked: j.asked}
}

// outgoing returns the common fields of all messages of the run to its reader.
func (j *job) outgoing(kind claybot.OutgoingKind) claybot.Outgoing {
	w := j.work()
	return claybot.Outgoing{Kind: kind, Run: j.run.ID, Agent: j.agent.ID, Message: w.Newest().ID, Route: w.Route()}
}

// note returns a record that the engine does not see.
func (j *job) note(level, text string) claybot.Record {
	return claybot.Record{Type: claybot.RecordNote, At: claybot.Now(), Run: j.run.ID, Level: level, Text: text}
}

// userRecord returns the record of a user or system message.
func (j *job) userRecord(m claybot.AgentMessage) claybot.Record {
	r := claybot.Record{
		Type: claybot.RecordUser, At: m.At, Run: j.run.ID,
		MessageID: m.ID, Text: m.Text, Quote: m.Context.Quote, Channel: m.Context.Channel, Earlier: m.Earlier,
		Files: m.Files, Aside: j.forgets(), Tainted: m.Tainted, Private: m.Private || len(m.Files) > 0,
	}
	if m.Type == claybot.MessageSystem {
		r.Type, r.Kind, r.Silent = claybot.RecordSystem, m.Kind, m.Silent
		r.Origin = cmp.Or(string(m.From.Agent), m.From.Name, "claybot")
		if m.From.Agent != "" {
			r.SenderName = m.From.Name
		}
		return r
	}
	from := m.From
	r.From, r.Zone = &from, j.voice().ZoneName()
	return r
}

// message returns a message about the run for another agent, with what the conversation
// has read; its id is unique for each run.
func (j *job) message(kind claybot.SystemKind, prefix, text string, c *conversation) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(fmt.Sprintf("%s/%s", prefix, j.run.ID)), Type: claybot.MessageSystem, Kind: kind,
		From: claybot.Sender{Agent: j.agent.ID, Name: j.agent.Descriptor.Name},
		Text: text, At: claybot.Now(), Hops: j.work().Hops(), Tainted: c.tainted(), Private: c.private(),
	}
}
