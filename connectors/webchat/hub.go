package webchat

import (
	"sync"

	"github.com/claybot/claybot"
)

const (
	// bufferLimit is how many bytes may wait for one reader before it is cut.
	bufferLimit = 256 << 10
	// keptEvents and keptBytes bound the events of a working run that a late
	// reader is shown: well below bufferLimit, as they are all queued at once.
	keptEvents = 64
	keptBytes  = 64 << 10
	// keptEnded is how many ended runs are remembered, so that a late preview
	// of one does not come back as a ghost.
	keptEnded = 256
)

// A topic is one person's window on one conversation.
type topic struct{ channel, user string }

func topicOf(r claybot.Route) topic { return topic{r.ChannelID, r.UserID} }

// A preview is the text of a step that is still being written.
type preview struct {
	Run  claybot.RunID `json:"run"`
	Step int           `json:"step"`
	Text string        `json:"text"`
	HTML string        `json:"html,omitempty"`
}

// A hub brings what is not durable from runs to open streams. It keeps state
// only for topics with a reader or a working run. The zero value is ready.
//
// mu guards everything below it, readers' fields included; it is held for map
// and slice work only.
type hub struct {
	mu     sync.Mutex
	topics map[topic]*room
	ended  map[claybot.RunID]bool
	order  []claybot.RunID // of ended, oldest first
}

// A room is what one topic has: its readers and the run that works now.
type room struct {
	readers map[*reader]bool
	run     claybot.RunID
	events  [][]byte // frames of the run, the newest
	size    int      // of events, in bytes
	growing *preview // nil when no text grows
	step    int      // the last one of the run whose text is complete
}

// A reader is one open stream. Its fields are guarded by the hub.
type reader struct {
	wake   chan struct{} // has one element when there is something to take
	abort  func()        // ends a write that hangs; does not block
	frames [][]byte
	size   int  // of frames, in bytes
	cut    bool // too slow; nothing more will come
	more   bool // the outbox has to be read
	typing bool
	text   *preview // newest, not yet taken
}

// A batch is what a reader took.
type batch struct {
	frames [][]byte
	text   *preview
	later  bool // a text waits, but not yet
	typing bool
	more   bool
	cut    bool
}

// join adds a reader, which starts with the state of the run that works now.
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

// take returns what waits for r. The text is left where it is when it is not
// due, so that a newer one may replace it and the end of the run remove it.
func (h *hub) take(r *reader, textDue bool) batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := batch{frames: r.frames, typing: r.typing, more: r.more, cut: r.cut}
	r.frames, r.size, r.typing, r.more = nil, 0, false, false
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

// typing tells all readers of a topic that an answer is being made.
func (h *hub) typing(t topic) {
	h.each(t, func(r *reader) { r.typing = true })
}

// sent wakes the readers of a topic to read the outbox. The answer of a run
// ends its preview; a text that is kept up to date meanwhile does not.
func (h *hub) sent(t topic, o claybot.Outgoing) {
	if o.Kind == claybot.OutgoingAnswer && o.Run != "" && o.Shown == "" {
		h.end(t, o.Run)
	}
	h.each(t, func(r *reader) { r.more = true })
}

// look wakes all readers of a channel, whoever they are, to read the outbox.
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

// grow replaces the growing text of a topic.
func (h *hub) grow(t topic, p preview) {
	h.mu.Lock()
	if h.ended[p.Run] {
		h.mu.Unlock()
		return
	}
	rm := h.room(t)
	rm.work(p.Run)
	if p.Step <= rm.step { // a straggler
		h.mu.Unlock()
		return
	}
	rm.growing = &p
	h.mu.Unlock()
	h.each(t, func(r *reader) { r.text = &p })
}

// observe gives the frame of an event to the readers and keeps it for later
// ones while its run works. step is the one whose text the event completes, 0
// for other events.
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

// keep stores a frame of a working run for readers that come later.
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

// end forgets what is shown of a run and remembers that it ended.
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

// each applies fn to all readers of a topic and wakes them. Those that fell
// too far behind are cut.
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

// room finds or makes the room of a topic; mu is held.
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

// drop forgets a room that nobody needs; mu is held.
func (h *hub) drop(t topic, rm *room) {
	if len(rm.readers) == 0 && rm.run == "" {
		delete(h.topics, t)
	}
}

// work makes run the one that works in the room.
func (rm *room) work(run claybot.RunID) {
	if rm.run != run {
		rm.run, rm.events, rm.size, rm.growing, rm.step = run, nil, 0, nil, 0
	}
}

// quiet takes the growing text away: it is complete.
func (rm *room) quiet() {
	rm.growing = nil
	for r := range rm.readers {
		r.text = nil
	}
}

// add queues a frame, or cuts the reader when it is too far behind.
func (r *reader) add(f []byte) {
	if r.size+len(f) > bufferLimit {
		r.cut, r.frames, r.size, r.text = true, nil, 0, nil
		return
	}
	r.frames = append(r.frames, f)
	r.size += len(f)
}
