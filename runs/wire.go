package runs

import (
	"encoding/json"
	"sync"

	"github.com/claybot/claybot"
)

// Source is where the events of the wire form come from: what was committed.
const Source = "outbox"

// Encode returns the wire form of an event: one JSON object without line
// breaks, the same bytes for the same event:
//
//	{"v":1,"runId":"…","seq":7,"type":"ToolCalled","ts":1700000000000,"source":"outbox","data":{…}}
//
// Data that is missing or no JSON, which no store gives out undamaged, becomes
// an empty object.
func Encode(e claybot.Event) []byte {
	w := wired{V: e.V, Run: e.Run, Seq: e.Seq, Type: e.Type, At: e.At, Source: Source, Data: e.Data}
	if len(w.Data) > 0 {
		if b, err := json.Marshal(w); err == nil {
			return b
		}
	}
	w.Data = json.RawMessage("{}")
	b, _ := json.Marshal(w) // strings and numbers always marshal
	return b
}

type wired struct {
	V      int               `json:"v"`
	Run    claybot.RunID     `json:"runId"`
	Seq    int64             `json:"seq"`
	Type   claybot.EventType `json:"type"`
	At     claybot.Time      `json:"ts"`
	Source string            `json:"source"`
	Data   json.RawMessage   `json:"data"`
}

// A sealed is an event that many readers share, with its wire form, which is
// made once for all of them.
type sealed struct {
	event claybot.Event
	once  sync.Once
	wire  []byte
}

func (s *sealed) encode() []byte {
	s.once.Do(func() { s.wire = Encode(s.event) })
	return s.wire
}

// size is about what an event takes in memory, with its wire form.
func (s *sealed) size() int { return 2*len(s.event.Data) + 512 }
