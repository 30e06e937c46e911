package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// deltaType is the event type of a growing text. It is not a claybot.Event: it is never
// stored.
const deltaType = "TokenDelta"

// A wireEvent is the data of one event of a stream, for the document.
type wireEvent struct {
	V      int               `json:"v"`
	Run    claybot.RunID     `json:"runId"`
	Seq    int64             `json:"seq,omitempty" doc:"From 1, without gaps; none in a TokenDelta."`
	Type   claybot.EventType `json:"type"`
	At     claybot.Time      `json:"ts,omitempty"`
	Source string            `json:"source,omitempty"`
	Data   any               `json:"data"`
}

// A deltaData is the data of a TokenDelta.
type deltaData struct {
	Node    string `json:"node"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt" doc:"A higher one begins the text of the step anew."`
	Offset  int    `json:"offset" doc:"Where the text belongs, in bytes of UTF-8."`
	Text    string `json:"text"`
}

// position returns the seq after which a reader continues. back reports that a browser
// reconnected by itself.
func position(r *http.Request) (after int64, back bool, err error) {
	last := r.Header.Get("Last-Event-ID")
	for _, x := range [][2]string{{"fromSeq", r.URL.Query().Get("fromSeq")}, {"Last-Event-ID", last}} {
		if x[1] == "" {
			continue
		}
		n, err := strconv.ParseInt(x[1], 10, 64)
		if err != nil || n < 0 {
			return 0, false, bad(x[0]+" must be a number from 0.", "Use the id of the last event you received.")
		}
		after = max(after, n)
	}
	return after, last != "", nil
}

// stream serves the events of a run. On a later error the stream just ends, and the reader
// reconnects.
func (a runAPI) stream(w http.ResponseWriter, r *http.Request) error {
	after, back, err := position(r)
	if err != nil {
		return err
	}
	id := runOf(r)
	run, err := a.runs.Run(r.Context(), id)
	if err != nil {
		return err
	}
	if back && run.State.Ended() && after >= run.LastSeq {
		return noContent(w) // otherwise a browser would reconnect forever
	}
	events := a.events
	if r.URL.Query().Get("format") == nodeStatus {
		events = a.statuses
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	out := openSink(w, r)
	if err = out.send([]byte("retry: 1000\n: ping\n\n")); err == nil {
		err = out.pour(r.Context(), func(ctx context.Context, p *pipe) error { return events(ctx, p, id, after) })
	}
	if err != nil {
		a.log.Debug("stream ended early", "run", id, "err", err)
	}
	return nil
}

// events puts the events of a run into a pipe, up to the last one.
func (a runAPI) events(ctx context.Context, p *pipe, id claybot.RunID, after int64) error {
	for u, err := range a.runs.Watch(ctx, id, after) {
		if err != nil {
			return err
		}
		if !p.put(ctx, updateFrame(u)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// nodeStatus is the format of a stream, and the type of its events, that has the status of each node alone.
const nodeStatus = "node_status"

// statuses puts the statuses of the nodes of a run into a pipe, and its last event. What an event changes
// depends on those before it, so all are read.
func (a runAPI) statuses(ctx context.Context, p *pipe, id claybot.RunID, after int64) error {
	var nodes runs.NodeStatuses
	for u, err := range a.runs.Watch(ctx, id, 0) {
		switch {
		case err != nil:
			return err
		case u.Event == nil:
			continue
		}
		changed := nodes.Add(*u.Event)
		if u.Event.Seq <= after {
			continue
		}
		for _, frame := range statusFrames(u, changed) {
			if !p.put(ctx, frame) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// statusFrames are the frames of what an event changes. The last one has the seq of the event, so that a reader
// who resumes behind it has all of them.
func statusFrames(u runs.Update, changed []runs.NodeStatus) (all [][]byte) {
	e := u.Event
	for i, s := range changed {
		b, _ := json.Marshal(wireEvent{V: e.V, Run: e.Run, Seq: e.Seq, Type: nodeStatus, At: e.At, Source: runs.Source, Data: s}) // strings and numbers always marshal
		seq := ""
		if i == len(changed)-1 && !e.Type.Ends() {
			seq = strconv.FormatInt(e.Seq, 10)
		}
		all = append(all, frame(seq, nodeStatus, b))
	}
	if e.Type.Ends() {
		all = append(all, updateFrame(u))
	}
	return all
}

func updateFrame(u runs.Update) []byte {
	if e := u.Event; e != nil {
		return frame(strconv.FormatInt(e.Seq, 10), string(e.Type), u.Wire()) // encoded once for all readers
	}
	d := u.Delta
	b, _ := json.Marshal(wireEvent{ // strings and numbers always marshal
		V: 1, Run: d.Run, Type: deltaType, Data: deltaData{d.Node, d.Step, d.Attempt, d.Offset, d.Text},
	})
	return frame("", deltaType, b)
}
