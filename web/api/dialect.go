package api

import (
	"context"
	"encoding/json"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// A dialect is a protocol of OpenAI, in which one client reads one run. The completer is
// the same for all.
type dialect interface {
	// begin is called first; put sends the events of a stream, and nil where there is none. It, end
	// and fail send the first and the last events.
	begin(run claybot.RunID, put func(event string, v any) error) error
	end(e ending) error
	fail(p *web.Problem) error
	// say adds to the text of the answer.
	say(text string) error
	// use shows that a tool was called, or how its call ended.
	use(u toolUse) error
	// whole is the answer to a client that reads no stream; with p, what such a client gets in its
	// place after the status was sent.
	whole(e ending, p *web.Problem) any
}

// A rawData is the data of an event that is no JSON.
type rawData string

// endMark follows the last event of a chat completion.
const endMark rawData = "[DONE]"

// A toolUse is one call of a tool: its beginning or its end.
type toolUse struct {
	id, tool string
	args     string // JSON
	ended    bool
	result   string
	fault    string // why it failed
}

// used shows what an event reports of a tool.
func (c *completer) used(ctx context.Context, e claybot.Event) error {
	var d struct {
		Call    string `json:"callId"`
		Tool    string `json:"tool"`
		Args    string `json:"argsPreview"`
		Preview string `json:"preview"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	u := toolUse{id: d.Call, tool: d.Tool, args: d.Args, ended: e.Type != claybot.EventToolCalled, result: d.Preview, fault: d.Error}
	if e.Type == claybot.EventToolFailed && u.fault == "" {
		u.fault = "failed"
	}
	switch {
	case c.terse:
		u.args, u.result = "", ""
		if u.fault != "" {
			u.fault = "failed"
		}
	case !u.ended:
		var err error
		if u.args, err = c.uncut(ctx, u.args, func(all []claybot.Record) string { return argsOf(all, e.Run, u.id) }); err != nil {
			return err
		}
	}
	if !json.Valid([]byte(u.args)) {
		u.args = "{}"
	}
	return c.out.use(u)
}

// argsOf returns the arguments of a call in a run.
func argsOf(all []claybot.Record, run claybot.RunID, call string) string {
	for _, r := range all {
		if r.Run != run {
			continue
		}
		for _, c := range r.ToolCalls {
			if c.ID == call {
				return string(c.Input())
			}
		}
	}
	return ""
}

// A chatDialect is that of chat completions. It shows no tools.
type chatDialect struct {
	run     claybot.RunID
	model   string
	usage   bool // the client wants it at the end of a stream
	created int64
	put     func(event string, v any) error // nil: nothing is sent
}

func (d *chatDialect) use(toolUse) error { return nil }

func (d *chatDialect) begin(run claybot.RunID, put func(event string, v any) error) error {
	d.run, d.put = run, put
	return d.send(d.chunk(&chatReply{Role: "assistant"}, nil))
}

func (d *chatDialect) say(text string) error {
	return d.send(d.chunk(&chatReply{Content: text}, nil))
}

// send sends a chunk of a stream.
func (d *chatDialect) send(v any) error {
	if d.put == nil {
		return nil
	}
	return d.put("", v)
}

func (d *chatDialect) end(e ending) error {
	stop := "stop"
	err := d.send(d.chunk(&chatReply{}, &stop))
	if err == nil && d.usage {
		last := d.chunk(nil, nil)
		last.Choices, last.Usage = []choice{}, counts(e.usage)
		err = d.send(last)
	}
	if err == nil {
		_ = d.send(endMark) // the answer is whole without it
	}
	return err
}

// fail omits the mark, which would signal success.
func (d *chatDialect) fail(p *web.Problem) error { return d.send(likeOpenAI(p)) }

func (d *chatDialect) chunk(delta *chatReply, finish *string) completion {
	return completion{
		ID: completionID(d.run), Object: "chat.completion.chunk", Created: d.created, Model: d.model,
		Choices: []choice{{Delta: delta, Finish: finish}},
	}
}

func (d *chatDialect) whole(e ending, p *web.Problem) any {
	if p != nil {
		return likeOpenAI(p)
	}
	stop := "stop"
	return completion{
		ID: completionID(d.run), Object: "chat.completion", Created: d.created, Model: d.model, Usage: counts(e.usage),
		Choices: []choice{{Message: &chatReply{Role: "assistant", Content: e.text}, Finish: &stop}},
	}
}

func completionID(run claybot.RunID) string { return "chatcmpl-" + string(run) }
