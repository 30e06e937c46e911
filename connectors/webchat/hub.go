package webchat

import (
	"sync"

	"github.com/claybot/claybot"
)

const (
	// bufferLimit is how many bytes may be queued for one reader before it is
	// disconnected.
	bufferLimit = 256 << 10
	// keptEvents and keptBytes limit the events of a run in flight that a new
	// reader gets: well below bufferLimit, because they are queued at once.
	keptEvents = 64
	keptBytes  = 64 << 10
	// keptEnded is how many ended runs are remembered, so that late previews of
	// them are dropped.
	keptEnded = 256
)

// A topic is one user's view of one conversation.
type topic struct{ channel, user string }

func topicOf(r claybot.Route) topic { return topic{r.ChannelID, r.UserID} }

// A preview is the unfinished text of a step.
type preview struct {
	Run  claybot.RunID `json:"run"`
	Step int           `json:"step"`
	Text string        `json:"text"`
	HTML string        `json:"html,omitempty"`
}

// A hub delivers transient state of runs to open streams. It keeps state only
// for topics with a reader or a run in flight. The zero value is ready to use.
//
// mu guards all fields below it, and the fields of readers. It is held only for
// map and slice operations.
type hub struct {
	mu     sync.Mutex
	topics map[topic]*room
	ended  map[claybot.RunID]bool
	order  []claybot.RunID // of ended, oldest first
}

// A room is the state of one topic: its readers and its current run.
type room struct {
	readers map[*reader]bool
	run     claybot.RunID
	events  [][]byte // the newest frames of the run
	size    int      // of events, in bytes
	growing *preview // nil if there is none
	step    int      // the last one of the run whose text is complete
}

// A reader is one open stream. Its fields are guarded by the hub.
type reader struct {
	wake   chan struct{} // has one element if something is queued
	abort  func()        // aborts a blocked write; does not block
	frames [][]byte
	size   int  // of frames, in bytes
	cut    bool // too slow; gets nothing more
	more   bool // the outbox has to be read
	typing bool
	text   *preview // the newest, not taken yet
	// amended are changes of messages that were made elsewhere.
	amended []claybot.AgentMessage
}

// A batch is the queue that a reader took.
type batch struct {
	frames [][]byte
	text   *preview
	later  bool // a text is pending, but not due
	typing bool
	more   bool
	cut    bool

	amended []claybot.AgentMessage
}

// join adds a reader, which starts with the state of the current run.
func (h *hub) join(t topic, abort func()) *reader {
	r := &reader{wake: make(chan struct{}, 1), abort: abort, more: true}
	r.wake <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	rm := h.room(t)
	rm.readers[r] = true
	for _, f := range rm.events {
		r.add(f)
	}
	r.text = rm.growing
	return r
}

// leave removes a reader.
func (h *hub) leave(t topic, r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rm := h.topics[t]; rm != nil {
		delete(rm.readers, r)
		h.drop(t, rm)
	}
}

// take returns the queue of r. It leaves a text that is not due, so that a
// newer one can replace it and the end of the run can remove it.
func (h *hub) take(r *reader, textDue bool) batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := batch{frames: r.frames, typing: r.typing, more: r.more, cut: r.cut, amended: r.amended}
	r.frames, r.size, r.typing, r.more, r.amended = nil, 0, false, false, nil
	if textDue {
		b.text, r.text = r.text, nil
	}
	b.later = r.text != nil
	return b
}

// publish gives a frame to all readers of a topic.
func (h *hub) publish(t topic, f []byte) {
	h.each(t, func(r *reader) { r.add(f) })
}

// typing shows the typing indicator to all readers of a topic.
func (h *hub) typing(t topic) {
	h.each(t, func(r *reader) { r.typing = true })
}

// sent wakes the readers of a topic to read the outbox. The answer of a run
// ends its preview; an updated status text does not.
func (h *hub) sent(t topic, o claybot.Outgoing) {
	if o.Kind == claybot.OutgoingAnswer && o.Run != "" && o.Shown == "" {
		h.end(t, o.Run)
	}
	h.each(t, func(r *reader) { r.more = true })
}

// look wakes all readers of a channel, of any user, to read the outbox.
func (h *hub) look(channel string) {
	h.mu.Lock()
	var found []topic
	for t := range h.topics {
		if t.channel == channel {
			found = append(found, t)
		}
	}
	h.mu.Unlock()
	for _, t := range found {
		h.each(t, func(r *reader) { r.more = true })
	}
}

// grow replaces the preview of a topic.
func (h *hub) grow(t topic, p preview) {
	h.mu.Lock()
	if h.ended[p.Run] {
		h.mu.Unlock()
		return
	}
	rm := h.room(t)
	rm.work(p.Run)
	if p.Step <= rm.step { // too late
		h.mu.Unlock()
		return
	}
	rm.growing = &p
	h.mu.Unlock()
	h.each(t, func(r *reader) { r.text = &p })
}

// observe sends the frame of an event to the readers and keeps it for later
// readers while the run works. step is the step whose text the event completes,
// 0 for other events.
func (h *hub) observe(t topic, e claybot.Event, step int, f []byte) {
	switch e.Type {
	case claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		h.end(t, e.Run)
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventAssistantMessage,
		claybot.EventToolCalled, claybot.EventToolSucceeded, claybot.EventToolFailed:
		h.keep(t, e.Run, step, f)
	}
	h.publish(t, f)
}

// keep stores a frame of a run in flight for later readers.
func (h *hub) keep(t topic, run claybot.RunID, step int, f []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended[run] {
		return
	}
	rm := h.room(t)
	rm.work(run)
	if step > rm.step {
		rm.step = step
		rm.quiet()
	}
	rm.events = append(rm.events, f)
	rm.size += len(f)
	for len(rm.events) > keptEvents || rm.size > keptBytes {
		rm.size -= len(rm.events[0])
		rm.events = rm.events[1:]
	}
}

// end drops the state of a run and remembers that it ended.
func (h *hub) end(t topic, run claybot.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended[run] {
		if h.ended == nil {
			h.ended = make(map[claybot.RunID]bool)
		}
		h.ended[run] = true
		h.order = append(h.order, run)
		if len(h.order) > keptEnded {
			delete(h.ended, h.order[0])
			h.order = h.order[1:]
		}
	}
	rm := h.topics[t]
	if rm == nil || rm.run != run {
		return
	}
	rm.work("")
	rm.quiet()
	h.drop(t, rm)
}

// each applies fn to all readers of a topic and wakes them. Readers that fell
// too far behind are disconnected.
func (h *hub) each(t topic, fn func(*reader)) {
	h.mu.Lock()
	rm := h.topics[t]
	if rm == nil {
		h.mu.Unlock()
		return
	}
	var slow []*reader
	for r := range rm.readers {
		if r.cut {
			continue
		}
		fn(r)
		if r.cut {
			slow = append(slow, r)
		}
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	h.mu.Unlock()
	for _, r := range slow {
		r.abort()
	}
}

// room finds or creates the room of a topic. It needs mu.
func (h *hub) room(t topic) *room {
	rm := h.topics[t]
	if rm == nil {
		rm = &room{readers: make(map[*reader]bool)}
		if h.topics == nil {
			h.topics = make(map[topic]*room)
		}
		h.topics[t] = rm
	}
	return rm
}

// drop removes an unused room. It needs mu.
func (h *hub) drop(t topic, rm *room) {
	if len(rm.readers) == 0 && rm.run == "" {
		delete(h.topics, t)
	}
}

// work sets the current run of the room.
func (rm *room) work(run claybot.RunID) {
	if rm.run != run {
		rm.run, rm.events, rm.size, rm.growing, rm.step = run, nil, 0, nil, 0
	}
}

// quiet removes the preview, because its text is complete.
func (rm *room) quiet() {
	rm.growing = nil
	for r := range rm.readers {
		r.text = nil
	}
}

// add queues a frame, or disconnects the reader if it is too far behind.
func (r *reader) add(f []byte) {
	if r.size+len(f) > bufferLimit {
		r.cut, r.frames, r.size, r.text = true, nil, 0, nil
		return
	}
	r.frames = append(r.frames, f)
	r.size += len(f)
}
