package telegramtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"
)

// A queue holds the updates that were not confirmed.
type queue struct {
	next    int64 // the next update id
	waiting []queued
	head    int // waiting[:head] is forgotten
	allowed []string
	brief   int       // of waiting, those that are not kept for long
	poll    *poll     // the one poll that is open
	refuse  time.Time // when the next poll may be refused at once
	arrived chan struct{}
}

// queued is one update, with its JSON.
type queued struct {
	id    int64
	at    time.Time
	brief bool   // kept for pressRetention only
	lane  string // its chat, for webhooks
	body  []byte
}

// old reports whether the time is over for which u is kept.
func (u queued) old() bool {
	kept := retention
	if u.brief {
		kept = pressRetention
	}
	return time.Since(u.at) > kept
}

// A poll is a getUpdates call that waits.
type poll struct{ terminated chan struct{} }

// retention is how long updates wait to be fetched.
const retention = 24 * time.Hour

func (q *queue) len() int { return len(q.waiting) - q.head }

// add appends an update and wakes the poll.
func (q *queue) add(brief bool, lane string, body func(id int64) []byte) int64 {
	id := q.next
	q.next++
	q.waiting = append(q.waiting, queued{id: id, at: time.Now(), brief: brief, lane: cmp.Or(lane, fmt.Sprint("update ", id)), body: body(id)})
	if brief {
		q.brief++
	}
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
	return id
}

// forget drops the updates below offset, and those too old to be kept.
func (q *queue) forget(offset int64) {
	for q.head < len(q.waiting) && (q.waiting[q.head].id < offset || q.waiting[q.head].old()) {
		if q.waiting[q.head].brief {
			q.brief--
		}
		q.waiting[q.head].body = nil
		q.head++
	}
	if rest := q.waiting[q.head:]; q.brief > 0 && slices.ContainsFunc(rest, queued.old) { // those end before older ones
		n := len(rest)
		q.waiting, q.head = slices.DeleteFunc(slices.Clone(rest), queued.old), 0
		q.brief -= n - len(q.waiting)
	}
	if q.head > 1000 && q.head*2 > len(q.waiting) {
		q.waiting = append([]queued(nil), q.waiting[q.head:]...)
		q.head = 0
	}
}

// drop forgets one update.
func (q *queue) drop(id int64) {
	for i := q.head; i < len(q.waiting); i++ {
		if q.waiting[i].id == id {
			if q.waiting[i].brief {
				q.brief--
			}
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return
		}
	}
}

func (q *queue) terminate() {
	if q.poll != nil {
		close(q.poll.terminated)
		q.poll = nil
	}
}

// allows reports whether updates of that kind are wanted.
func (q *queue) allows(kind string) bool {
	if len(q.allowed) == 0 {
		return updateTypes[kind]
	}
	return slices.Contains(q.allowed, kind)
}

func conflict() *apiError {
	return &apiError{Code: 409, Description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
}

func hooked() *apiError {
	return &apiError{Code: 409, Description: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
}

// refuseEvery is the interval at which polls are refused at once; others are refused later.
const refuseEvery = 3 * time.Second

// getUpdates answers as soon as there are updates, or after the timeout. A poll that waits ends
// with a conflict when another begins to wait; one that is answered at once disturbs none
// (do_get_updates and fail_query_conflict of
// github.com/tdlib/telegram-bot-api/blob/master/telegram-bot-api/Client.cpp, read 2026-11-28).
func (s *Server) getUpdates(c *call) ([]byte, *apiError) {
	p := struct {
		Offset  integer   `json:"offset"`
		Limit   integer   `json:"limit"`
		Timeout integer   `json:"timeout"`
		Allowed *[]string `json:"allowed_updates"`
	}{Limit: 100}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	limit := min(max(int(p.Limit), 1), 100)
	if p.Allowed != nil {
		s.wanted(*p.Allowed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook.url != "" {
		return nil, hooked()
	}
	if p.Offset < 0 {
		p.Offset = integer(s.queue.fromEnd(int(-p.Offset)))
	}
	s.queue.forget(int64(p.Offset))
	if s.queue.len() == 0 && p.Timeout > 0 {
		if err := s.longPoll(c, time.Duration(min(p.Timeout, 50))*time.Second); err != nil {
			return nil, err
		}
		s.queue.forget(int64(p.Offset))
	}
	return s.queue.list(limit), nil
}

// longPoll waits, without the lock, until an update comes.
func (s *Server) longPoll(c *call, timeout time.Duration) *apiError {
	me := &poll{terminated: make(chan struct{})}
	s.queue.terminate()
	s.queue.poll = me
	if s.queue.arrived == nil {
		s.queue.arrived = make(chan struct{})
	}
	arrived := s.queue.arrived
	s.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	ended := false
	select {
	case <-arrived:
	case <-timer.C:
	case <-me.terminated:
		ended = true
	case <-c.ctx.Done():
	case <-s.done:
	}
	s.mu.Lock()
	if s.queue.poll == me {
		s.queue.poll = nil
	}
	switch {
	case ended && s.hook.url != "":
		return hooked()
	case ended:
		s.refuseLater(c)
		return conflict()
	case c.ctx.Err() != nil: // the answer has no reader
		return conflict()
	}
	return nil
}

// refuseLater waits, without the lock, until a poll is refused.
func (s *Server) refuseLater(c *call) {
	if now := time.Now(); !now.Before(s.queue.refuse) {
		s.queue.refuse = now.Add(refuseEvery)
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(refuseEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	case <-s.done:
	}
}

// fromEnd is the id of the n-th update from the end.
func (q *queue) fromEnd(n int) int64 {
	rest := q.waiting[q.head:]
	if n > len(rest) {
		n = len(rest)
	}
	if n == 0 {
		return 0
	}
	return rest[len(rest)-n].id
}

// list encodes up to limit updates.
func (q *queue) list(limit int) []byte {
	b := []byte{'['}
	for i, u := range q.waiting[q.head:] {
		if i == limit {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, u.body...)
	}
	return append(b, ']')
}

// SetNextUpdateID makes the next update have that id, as after a quiet week.
func (s *Server) SetNextUpdateID(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.next = id
}

// Pending returns the ids of the updates that were not confirmed.
func (s *Server) Pending() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, 0, s.queue.len())
	for _, u := range s.queue.waiting[s.queue.head:] {
		ids = append(ids, u.id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

// Deliver queues an update of any kind, such as "callback_query", and returns
// its id, or 0 when the bot does not want that kind.
func (s *Server) Deliver(kind string, payload any) int64 {
	body := mustJSON(payload)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliver(kind, body)
}

// deliverIn delivers what happened in a chat, if privacy mode does not hide it.
func (s *Server) deliverIn(c *chat, kind string, body []byte) int64 {
	if s.hiddenFrom(c, body) {
		return 0
	}
	return s.deliver(kind, body)
}

func (s *Server) deliver(kind string, body []byte) int64 {
	if !s.queue.allows(kind) {
		return 0
	}
	return s.queue.add(kind == "callback_query", laneOf(kind, body), func(id int64) []byte {
		b := make([]byte, 0, len(body)+48)
		b = append(b, `{"update_id":`...)
		b = append(b, mustJSON(id)...)
		b = append(b, `,"`...)
		b = append(b, kind...)
		b = append(b, `":`...)
		b = append(b, body...)
		return append(b, '}')
	})
}

// laneOf is the queue of an update for webhooks: presses wait for those of their user, and all else for
// what is of the same kind and chat; messages and edits are of one kind (Client.cpp of
// github.com/tdlib/telegram-bot-api, read 2026-11-28). What is of no chat has a lane of its own.
func laneOf(kind string, body []byte) string {
	var in struct {
		Chat, From struct{ ID json.Number }
	}
	_ = json.Unmarshal(body, &in)
	switch {
	case kind == "callback_query":
		return "press " + in.From.ID.String()
	case in.Chat.ID == "":
		return ""
	case kind == "edited_message":
		kind = "message"
	}
	return kind + " " + in.Chat.ID.String()
}

// DeliverRaw queues what body returns as an update, whatever it is.
func (s *Server) DeliverRaw(body func(id int64) string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.add(false, "", func(id int64) []byte { return []byte(body(id)) })
}
