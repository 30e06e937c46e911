package telegramtest

import "time"

// An Entry is one request and what became of it. Status is 0 when no answer
// was given in full.
type Entry struct {
	At     time.Time
	Method string // in lower case
	Chat   int64
	Params string // JSON
	Status int
	Answer string
}

// maxEntries bounds the journal; older entries are dropped.
const maxEntries = 10_000

type journal struct {
	entries []Entry
	start   int
}

func (j *journal) add(e Entry) {
	if len(j.entries) < maxEntries {
		j.entries = append(j.entries, e)
		return
	}
	j.entries[j.start] = e
	j.start = (j.start + 1) % maxEntries
}

// end notes what became of a call.
func (s *Server) end(c *call, status int, answer []byte) {
	if s.cfg.NoJournal {
		return
	}
	e := Entry{At: time.Now(), Method: c.method, Chat: c.chat, Params: string(c.params), Status: status, Answer: string(answer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.add(e)
}

// Journal returns the newest requests, at most 10,000, in the order in which
// they ended; only those to method unless that is empty.
func (s *Server) Journal(method string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Entry
	for i := range s.log.entries {
		e := s.log.entries[(s.log.start+i)%len(s.log.entries)]
		if method == "" || e.Method == lower(method) {
			out = append(out, e)
		}
	}
	return out
}

// Calls counts the requests to a method.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[lower(method)]
}

// Duplicates returns the texts that a chat shows more than once.
func (s *Server) Duplicates(chatID int64) []string {
	seen := make(map[string]int)
	var out []string
	for _, m := range s.Sent(chatID) {
		if seen[m.Text]++; seen[m.Text] == 2 {
			out = append(out, m.Text)
		}
	}
	return out
}
