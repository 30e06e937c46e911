package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// silence is the word with which an agent declines to reply, and silenceTrim the
// characters that models put around it.
const (
	silence     = "NO_REPLY"
	silenceTrim = " \t\r\n\"'`*."
)

// A completer follows a run for an OpenAI client. It serves one request.
type completer struct {
	completions *completions
	got         agentsystem.Accepted
	repeat      *repeat // nil: the request has a key
	out         dialect
	terse       bool // the client reads no arguments and results of tools
	strict      bool // the answer is JSON: the client reads no other text

	after   int64  // events up to this seq were shown before
	instead string // is the reply; no run followed

	mine bool   // the current events are about the client's message
	said bool   // something was shown
	step int    // of the text below
	try  int    // of the step
	text string // of the step, as received so far
	sent string // the part of text that was shown

	records []claybot.Record // of the run, once it has ended
}

// An ending is how a run ended or paused.
type ending struct {
	text  string
	usage claybot.Usage
}

// stream streams a run.
func (c *completer) stream(w http.ResponseWriter, r *http.Request) error {
	line := openSink(w, r)
	err := line.pour(r.Context(), func(ctx context.Context, p *pipe) error {
		put := func(event string, v any) error {
			raw, is := v.(rawData)
			b, err := []byte(raw), error(nil)
			if !is {
				b, err = json.Marshal(v)
			}
			if err == nil && !p.put(ctx, frame("", event, b)) {
				err = context.Cause(ctx)
			}
			return err
		}
		if err := c.out.begin(c.got.Run, put); err != nil {
			return err
		}
		end, err := c.follow(ctx, true)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p := explain(operation{missing: noModel}, err)
			if p.Ended {
				c.repeat.answered(ctx)
			}
			return c.out.fail(p)
		}
		c.repeat.answered(ctx)
		return c.out.end(end)
	})
	if err != nil {
		c.repeat.unanswered(r.Context())
		c.completions.log.Debug("completion ended early", "run", c.got.Run, "request", web.RequestID(r.Context()), "err", err)
		panic(http.ErrAbortHandler) // a clean end would look like the end of the answer
	}
	c.repeat.delivered(r.Context())
	return nil
}

// follow watches the run until it ends or asks a question, and shows its texts, also while
// they grow if live is set.
func (c *completer) follow(ctx context.Context, live bool) (ending, error) {
	if c.instead != "" {
		return ending{text: c.instead}, c.paragraph(c.instead)
	}
	for u, err := range c.completions.runs.Watch(ctx, c.got.Run, c.after) {
		if err != nil {
			return ending{}, err
		}
		if u.Delta != nil {
			if live && !c.strict {
				err = c.grow(*u.Delta)
			}
		} else if end, over, stop := c.event(ctx, *u.Event); over || stop != nil {
			return end, stop
		}
		if err != nil {
			return ending{}, err
		}
	}
	if ctx.Err() != nil {
		return ending{}, context.Cause(ctx)
	}
	return c.looked(ctx)
}

// looked reads how a run ended whose last event was missed.
func (c *completer) looked(ctx context.Context) (ending, error) {
	run, err := c.completions.runs.Run(ctx, c.got.Run)
	if err != nil {
		return ending{}, err
	}
	switch run.State {
	case claybot.RunSucceeded:
		return c.finish(ctx, run.ID, run.Output, run.Usage)
	case claybot.RunFailed:
		return ending{}, failed(run.Error.Code, run.Error.Text)
	}
	return ending{}, canceled(run.Cancel)
}

// failed and canceled are the errors of a run without an answer. OpenAI clients do not
// retry status 400, but LangChain retries 422 and all above 413, others 409.
func failed(code, text string) *web.Problem {
	return &web.Problem{Status: http.StatusBadRequest, Kind: "run_failed", Ended: true, Code: code, Message: "The run failed: " + text}
}

func canceled(by string) *web.Problem {
	return &web.Problem{Status: http.StatusBadRequest, Kind: "run_canceled", Ended: true, Code: "canceled", Message: "The run was canceled: " + by + "."}
}

// event shows the text of an event. over means that the answer is complete.
func (c *completer) event(ctx context.Context, e claybot.Event) (end ending, over bool, err error) {
	var d struct {
		Messages  []claybot.MessageID `json:"messages"`
		Questions []claybot.Question  `json:"questions"`
		Step      int                 `json:"step"`
		Text      string              `json:"text"`
		Output    string              `json:"output"`
		Usage     claybot.Usage       `json:"usage"`
		Code      string              `json:"code"`
		Error     string              `json:"error"`
		By        string              `json:"by"`
		Message   claybot.MessageID   `json:"messageId"`
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return ending{}, true, err
	}
	switch e.Type {
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventMessagesInjected:
		c.mine = c.mine || slices.Contains(d.Messages, c.got.Message)
	case claybot.EventAnswered:
		c.mine = c.mine || c.got.Message != "" && d.Message == c.got.Message
	case claybot.EventAssistantMessage:
		if !c.mine || c.strict {
			return ending{}, false, nil
		}
		text, err := c.uncut(ctx, d.Text, func(all []claybot.Record) string { return stepText(all, e.Run, d.Step) })
		if err != nil {
			return ending{}, true, err
		}
		return ending{}, false, c.settle(d.Step, text)
	case claybot.EventToolCalled, claybot.EventToolSucceeded, claybot.EventToolFailed:
		if c.mine {
			err = c.used(ctx, e)
		}
		return ending{}, false, err
	case claybot.EventAwaitingInput:
		if !c.mine || len(d.Questions) == 0 {
			return ending{}, false, nil
		}
		text := asked(d.Questions)
		return ending{text: text}, true, c.paragraph(text)
	case claybot.EventRunFinished:
		end, err := c.finish(ctx, e.Run, d.Output, d.Usage)
		return end, true, err
	case claybot.EventRunFailed:
		return ending{}, true, failed(d.Code, d.Error)
	case claybot.EventRunCanceled:
		return ending{}, true, canceled(d.By)
	}
	return ending{}, false, nil
}

// finish returns the end of a run whose reply starts with output.
func (c *completer) finish(ctx context.Context, run claybot.RunID, output string, usage claybot.Usage) (ending, error) {
	text, err := c.uncut(ctx, output, func(all []claybot.Record) string { return replyText(all, run) })
	if err != nil {
		return ending{}, err
	}
	if isSilence(text) {
		text = ""
	}
	if !c.said {
		err = c.paragraph(text)
	}
	return ending{text, usage}, err
}

// uncut returns the full version of a text that may be truncated, from the records of the
// run if they are still there.
func (c *completer) uncut(ctx context.Context, text string, find func([]claybot.Record) string) (string, error) {
	begin, isCut := previewed(text)
	if !isCut {
		return text, nil
	}
	all := c.records
	if all == nil {
		run, err := c.completions.runs.Run(ctx, c.got.Run)
		if err != nil {
			return "", err
		}
		if all, err = c.completions.runs.RunRecords(ctx, run); err != nil {
			return "", err
		}
		if run.State.Ended() {
			c.records = all
		}
	}
	if found := find(all); strings.HasPrefix(found, begin) {
		return found, nil
	}
	return text, nil
}

// previewed returns the beginning of a text, and whether it may be all that runs.Preview left of it.
func previewed(text string) (begin string, isCut bool) {
	begin, isCut = strings.CutSuffix(text, "…")
	return begin, isCut && len(text) >= runs.PreviewLimit-3
}

// stepText returns the text of the model in one step of a run.
func stepText(all []claybot.Record, run claybot.RunID, step int) string {
	for _, r := range slices.Backward(all) {
		if r.Run == run && r.Step == step && r.Type == claybot.RecordAssistant {
			return r.Text
		}
	}
	return ""
}

// replyText returns the reply of a run: the texts since its last tool call, or the last answer that was pushed back.
func replyText(all []claybot.Record, run claybot.RunID) string {
	var texts []string
	for _, r := range all {
		switch {
		case r.Run != run:
		case r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0:
			texts = append(texts, r.Text)
		case r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool || r.Kind == claybot.KindPushBack:
			texts = nil
		}
	}
	return strings.Join(texts, "")
}

// asked formats questions for a user.
func asked(all []claybot.Question) string {
	var b strings.Builder
	for i, q := range all {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(q.Text)
		for _, o := range q.Options {
			b.WriteString("\n- " + o)
		}
		if questions.Reserved(q) {
			b.WriteString("\n\n" + whoAnswers(q))
		}
	}
	return b.String()
}

// whoAnswers explains how operators answer a question that is reserved for them.
func whoAnswers(q claybot.Question) string {
	what, with := "question", "claybot answer "+q.ID
	if q.Type == claybot.QuestionConfirm {
		what, with = "approval", "claybot approve "+q.ID+" or claybot deny "+q.ID
	}
	who := "an operator"
	if len(q.Approvers) > 0 {
		who = strings.Join(q.Approvers, ", ") + ", or for " + who
	}
	return "This " + what + " waits for " + who + ": on the page, with " + with + ", or at POST /questions/" + url.PathEscape(q.ID) + "/answer."
}

// grow shows the new part of a streamed text.
func (c *completer) grow(d runs.Delta) error {
	if !c.mine {
		return nil
	}
	c.at(d.Step)
	if d.Attempt > c.try {
		c.try, c.text = d.Attempt, ""
	}
	if d.Offset > len(c.text) {
		return nil // its event will have the whole text
	}
	c.text = c.text[:d.Offset] + d.Text
	if strings.HasPrefix(silence, strings.ToUpper(strings.TrimLeft(c.text, silenceTrim))) || isSilence(c.text) {
		return nil // it may be the word for silence
	}
	return c.more(c.text)
}

// at starts the text of another step.
func (c *completer) at(step int) {
	if step != c.step {
		c.step, c.try, c.text, c.sent = step, 0, "", ""
	}
}

// more shows the rest of a text whose beginning was shown. The different text of a
// repeated step waits until the step is complete.
func (c *completer) more(text string) error {
	rest, ok := strings.CutPrefix(text, c.sent)
	if !ok || rest == "" {
		return nil
	}
	if c.sent == "" && c.said {
		rest = "\n\n" + rest
	}
	c.sent, c.said = text, true
	return c.out.say(rest)
}

// settle shows the rest of a complete text.
func (c *completer) settle(step int, text string) error {
	c.at(step)
	if isSilence(text) {
		return nil
	}
	if !strings.HasPrefix(text, c.sent) {
		c.sent = "" // a paragraph of its own
	}
	return c.more(text)
}

// paragraph appends a text to what was shown.
func (c *completer) paragraph(text string) error {
	c.sent = ""
	return c.more(text)
}

func isSilence(text string) bool {
	return strings.EqualFold(strings.Trim(text, silenceTrim), silence)
}
