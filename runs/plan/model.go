package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// How much of the conversation a model is shown, in bytes: at first, and when
// the provider finds that too long.
var talkSizes = []int{48 << 10, 12 << 10, 3 << 10}

const maxPiece = 4 << 10 // bytes of one record

// A job is what a node wants of the model.
type job struct {
	id     string
	system string // behind the prompt of the agent
	task   string // behind the conversation
	// more is what was said about the task since: an answer, and what is wrong
	// with it.
	more []llm.Message
	// hint says what helps to correct an answer; nil: nothing.
	hint func() string
}

// A prompter asks the model of the agent, with the conversation before the task.
type prompter struct{ cfg *Config }

// ask makes one model call.
func (p *prompter) ask(ctx context.Context, s *state, j job) (llm.Response, error) {
	var model llm.Model
	if p.cfg.Model != nil {
		model = p.cfg.Model(s.Turn.Agent)
	}
	if model == nil {
		return llm.Response{}, runs.NoModel()
	}
	system, err := p.cfg.prompt(s.Turn)
	if err != nil {
		return llm.Response{}, err
	}
	for try, size := range talkSizes {
		first := llm.Message{ID: j.id, Role: llm.RoleUser, Content: talk(s, size) + "\n\n" + j.task}
		resp, err := model.Chat(ctx, llm.Request{
			Agent: s.Turn.Agent.ID, Run: s.Turn.Run.ID, System: strings.TrimSpace(system + "\n\n" + j.system),
			Messages: append([]llm.Message{first}, j.more...), Lost: s.Turn.Lost,
		})
		switch {
		case err == nil:
			return resp, nil
		case ctx.Err() != nil:
			return resp, runs.Ended(ctx)
		case runs.TooLong(err) && try < len(talkSizes)-1:
			p.cfg.log(s).Warn("conversation too long for the provider", "bytes", size)
			continue
		}
		return resp, runs.ModelError(err)
	}
	return llm.Response{}, nil // not reached: the last size returns
}

// talk is the newest part of what the agent remembers, as a text. The steps of
// this run are left out: who needs them gets them by name.
func talk(s *state, size int) string {
	summary, rest := llm.Folded(s.Turn.History)
	var parts []string
	for _, r := range slices.Backward(rest) {
		own := r.Run == s.Turn.Run.ID && (r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool)
		if own {
			continue
		}
		part := llm.Transcript(r, maxPiece)
		if part == "" {
			continue
		}
		if size -= len(part); size < 0 && len(parts) > 0 {
			break
		}
		parts = append(parts, part)
	}
	if summary != nil && size > 0 {
		parts = append(parts, llm.Transcript(*summary, size))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n\n")
}

// repaired asks for an answer that read accepts, once more when the first one has
// faults, which the model is told. The faults are those of the last answer; none
// when it was accepted.
func (p *prompter) repaired(ctx context.Context, s *state, j job, read func(text string) (faults []string)) ([]string, error) {
	for try := 1; ; try++ {
		resp, err := p.ask(ctx, s, j)
		if err != nil {
			return nil, err
		}
		s.Used(resp.Model, resp.Usage)
		faults := read(resp.Text)
		if len(faults) == 0 || try == 2 {
			return faults, nil
		}
		p.cfg.log(s).Info("asking the model to correct its answer", "node", s.Node, "faults", len(faults))
		repair := askRepair + "\n- " + strings.Join(faults, "\n- ")
		if j.hint != nil {
			repair += j.hint()
		}
		j.more = []llm.Message{{Role: llm.RoleAssistant, Content: answered(resp)}, {Role: llm.RoleUser, Content: repair}}
	}
}

// answered is what a model said, in a form that it may be shown again.
func answered(r llm.Response) string {
	text := strings.ToValidUTF8(r.Text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return "(nothing)"
	}
	return llm.Cut(text, maxShown, maxShown/2, func(left int) string { return llm.LeftOut(left, len(text)) })
}

// maxShown is how much of a bad answer its model is shown again, in bytes.
const maxShown = 16 << 10
