package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// The limits of waiting for other agents.
const (
	defaultPatience = 10 * time.Minute
	maxPatience     = 24 * time.Hour
	// answerGrace is how long after the last deadline an answer may still come: the runs
	// that are waited for end by themselves.
	answerGrace = time.Minute
	// maxAnswers is the most bytes of a result with answers, below what is cut
	// in the middle.
	maxAnswers = 30 << 10
	// maxFlowAnswers is that of a node of a workflow.
	maxFlowAnswers = 1 << 20
)

// A Starter creates subagents and posts their tasks.
type Starter struct {
	agents    Agents
	index     Index
	inbox     Inbox
	messenger *Messenger
	accept    func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error)
	work      *runs.AtWork
	limits    func() Limits
	profile   func(claybot.Descriptor) string
	flow      func(name string) *flows.Flow // nil for none
	// permissions are what the caller may do now.
	permissions func(ctx context.Context, a claybot.Agent) (claybot.Permissions, error)
	starting    *sync.Mutex // held while subagents are started, so that limits hold
}

// StartSubagent implements tools.Agents.
func (s *Starter) StartSubagent(ctx context.Context, env tools.Env, t tools.Subagent) (claybot.AgentID, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := s.admit(ctx, env, []tools.Subagent{t}, tools.Spawning{}); err != nil {
		return "", err
	}
	c, err := s.start(ctx, env, 0, t, false)
	if err == nil && c.refused != "" {
		err = errors.New(c.refused)
	}
	return c.id, err
}

// noAnswer is why there is no result of what was asked.
const noAnswer = "no answer came in time"

// results returns the results for a paused run, or nil while one may still arrive; later,
// each missing one becomes an error result.
func results(ctx context.Context, box Inbox, wait claybot.Awaiting) ([]claybot.Result, error) {
	answers := make([]claybot.Result, len(wait.Answers))
	late := claybot.Now() >= wait.Until
	for i, id := range wait.Answers {
		r, err := box.Receipt(ctx, id)
		switch {
		case errors.Is(err, storage.ErrNotFound) && !late:
			return nil, nil
		case errors.Is(err, storage.ErrNotFound):
			answers[i].Error = noAnswer
		case err != nil:
			return nil, fmt.Errorf("read an answer: %w", err)
		case r.Message.Answer != nil:
			answers[i] = *r.Message.Answer
		default:
			answers[i].Error = "the answer cannot be read"
		}
	}
	return answers, nil
}

// A started is a subagent that a call created, or another agent that it asked, and its deadline; or why it
// could not be asked, or a flow does not begin with its payload.
type started struct {
	id       claybot.AgentID
	deadline claybot.Time
	refused  string
}

// startedBefore finds the i-th subagent of a call by its task, which is known
// also when the agent is gone.
func (s *Starter) startedBefore(ctx context.Context, env tools.Env, i int) (_ started, ok bool, err error) {
	r, err := s.inbox.Receipt(ctx, taskID(env.UID(i)))
	if errors.Is(err, storage.ErrNotFound) {
		return started{}, false, nil
	}
	if err != nil {
		return started{}, false, fmt.Errorf("look for the subagent: %w", err)
	}
	return started{id: r.Agent, deadline: r.Message.Deadline}, true, nil
}

// checkTask validates the task of a subagent.
func (s *Starter) checkTask(env tools.Env, t tools.Subagent) error {
	if t.Flow != "" {
		return s.checkFlow(env, t)
	}
	if strings.TrimSpace(t.Task) == "" {
		return errors.New("task must not be empty")
	}
	if len(t.Task) > inbox.MaxText {
		return fmt.Errorf("task has %d bytes; the limit is %d", len(t.Task), inbox.MaxText)
	}
	if t.Timeout < 0 || t.Timeout > maxPatience {
		return fmt.Errorf("timeout %v is not within 0 and %v", t.Timeout, maxPatience)
	}
	if t.Agent != "" {
		return checkExisting(t)
	}
	if err := s.checkEngine(env, t); err != nil {
		return err
	}
	if t.Model != "" && t.Model != background(env).Model {
		var models []string
		if list := s.limits().Models; list != nil {
			models = list(env.Agent)
		}
		if !slices.Contains(models, t.Model) {
			return fmt.Errorf("model %q is not configured for you; leave it out, or choose one of: %s", t.Model, strings.Join(models, ", "))
		}
	}
	own := background(env).Tools
	if known := s.limits().Tools; known != nil {
		own = known(env.Agent)
	}
	if _, err := t.Permissions.Cleaned(); err != nil {
		return fmt.Errorf("field permissions.%w", err)
	}
	for _, name := range slices.Concat(t.Tools, t.Permissions.Tools.Allow, t.Permissions.Tools.Deny) {
		if own != nil && !slices.Contains(own, name) {
			return fmt.Errorf("tool %.64q is not one of yours, so a subagent cannot have it", name)
		}
	}
	return nil
}

// background are the background settings of the caller.
func background(env tools.Env) claybot.Background {
	if b := env.Agent.State.Background; b != nil {
		return *b
	}
	return claybot.Background{}
}

// room returns an error when the limits do not allow n more subagents. The caller holds
// starting.
func (s *Starter) room(ctx context.Context, env tools.Env, n int) error {
	limits, caller := s.limits(), env.Agent
	if n == 0 {
		return nil
	}
	if caller.Descriptor.Type == claybot.AgentFlow { // an operator wrote what it starts
		return nil
	}
	if caller.Descriptor.Depth >= limits.MaxDepth {
		return fmt.Errorf("subagents may be nested %d deep at most; do this yourself", limits.MaxDepth)
	}
	children, err := s.index.Children(ctx, caller.ID)
	if err != nil {
		return fmt.Errorf("count subagents: %w", err)
	}
	busy := 0
	for _, c := range children {
		if c.Busy {
			busy++
		}
	}
	if busy+n > limits.MaxChildren {
		return fmt.Errorf("%d of your subagents are at work and %d more would be over the limit of %d; wait for some to end", busy, n, limits.MaxChildren)
	}
	since := claybot.At(time.Now().Add(-time.Hour))
	started, err := s.index.Started(ctx, root(caller), since)
	if err != nil {
		return fmt.Errorf("count subagents: %w", err)
	}
	if started+n > limits.MaxStarts {
		return fmt.Errorf("%d subagents were started here within an hour and %d more would be over the limit of %d; try again later", started, n, limits.MaxStarts)
	}
	return nil
}

// root is the agent with which the chain of parents of a begins.
func root(a claybot.Agent) claybot.AgentID {
	if a.Descriptor.Root != "" {
		return a.Descriptor.Root
	}
	return a.ID
}

// child describes the i-th subagent of a call, or the thread that a task is for.
func (s *Starter) child(env tools.Env, i int, t tools.Subagent) claybot.Descriptor {
	parent := env.Agent
	d := claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: env.UID(i), Parent: parent.ID, Root: root(parent), Depth: parent.Descriptor.Depth + 1,
		Owner: parent.Descriptor.OwnerID(),
	}
	if t.Thread != "" {
		d = claybot.Thread(t.Thread, d.Owner)
	}
	d.Name, d.Profile = subagentName(t), parent.Descriptor.Profile
	if d.Profile == "" {
		d.Profile = s.profile(parent.Descriptor)
	}
	return d
}

// subagentName is the name of the subagent that does a task.
func subagentName(t tools.Subagent) string { return connectors.OneLine(claybot.Clean(t.Name), 80) }

// taskID is the id of a task: of the first message of a subagent, whose uid it has, unless a thread
// does it.
func taskID(uid string) claybot.MessageID { return claybot.MessageID("task/" + uid) }

// answerID is the id of the i-th answer that a call waits for.
func answerID(env tools.Env, i int) claybot.MessageID {
	return claybot.MessageID(fmt.Sprintf("answer/%s", env.UID(i)))
}

func patience(d time.Duration) time.Duration {
	if d == 0 {
		return defaultPatience
	}
	return d
}

// start creates one subagent and posts its task. It is idempotent.
func (s *Starter) start(ctx context.Context, env tools.Env, i int, t tools.Subagent, awaited bool) (started, error) {
	if t.Agent != "" {
		return s.askExisting(ctx, env, i, t)
	}
	if t.Flow != "" {
		return s.startFlow(ctx, env, i, t, awaited)
	}
	d := s.child(env, i, t)
	known, ok, err := s.startedBefore(ctx, env, i)
	if err != nil {
		return started{}, err
	}
	if ok {
		s.work.Of(env.Run).Tell(runs.Started(env.Run, known.id, d.Name)) // a crash may have come before
		return known, nil
	}
	own := background(env)
	b := claybot.Background{Model: t.Model, Prompt: t.Prompt, Tools: t.Tools, Deep: t.Deep}
	if b.Model == "" {
		b.Model = own.Model
	}
	if b.Tools == nil {
		b.Tools = own.Tools
	}
	may, err := s.permissions(ctx, env.Agent)
	if err != nil {
		return started{}, err
	}
	asked, err := t.Permissions.Cleaned()
	if err != nil {
		return started{}, err
	}
	if may = may.Narrow(asked); !may.IsZero() {
		b.Permissions = &may
	}
	m := s.first(env, i, t)
	m.From, m.Engine = claybot.Sender{Agent: env.Agent.ID, Name: env.Agent.Descriptor.Name}, t.Engine
	if t.Thread != "" {
		as := b
		m.As, b = &as, claybot.Background{Tools: []string{}} // what it may do, its tasks say
	}
	if t.Report {
		m.Report = env.Agent.ID
	}
	if awaited {
		m.Awaited = &claybot.Awaited{Agent: env.Agent.ID, Run: env.Run, ID: answerID(env, i)}
		m.Deadline = claybot.At(time.Now().Add(patience(t.Timeout)))
	}
	return s.give(ctx, env, d, b, m)
}

// first is the message with the i-th task of a call.
func (s *Starter) first(env tools.Env, i int, t tools.Subagent) claybot.AgentMessage {
	work := s.work.Of(env.Run)
	m := claybot.AgentMessage{
		ID: taskID(env.UID(i)), Type: claybot.MessageSystem, Kind: claybot.KindTask, Text: claybot.Clean(t.Task), At: claybot.Now(),
		Hops: work.Hops() + 1, Root: work.Root(env.Run), Budgets: work.Budgets(env.Run), Tainted: env.Tainted, Private: env.Private, Dry: work.Dry(),
	}
	if env.Place != (claybot.Route{}) {
		m.Place = &env.Place
	}
	return m
}

// give creates an agent, unless it is there, and posts its task.
func (s *Starter) give(ctx context.Context, env tools.Env, d claybot.Descriptor, b claybot.Background, m claybot.AgentMessage) (started, error) {
	agent, err := s.agents.NewAgent(ctx, d, b)
	if err != nil {
		return started{}, fmt.Errorf("create the subagent: %w", err)
	}
	if _, err := s.accept(ctx, agent, m); err != nil {
		return started{}, fmt.Errorf("give the subagent its task: %w", err)
	}
	s.work.Of(env.Run).Tell(runs.Started(env.Run, agent.ID, d.Name))
	return started{id: agent.ID, deadline: m.Deadline}, nil
}
