package discordtest

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

func (s *Server) identify(c *socket, d json.RawMessage) {
	var p struct {
		Token      string `json:"token"`
		Intents    int    `json:"intents"`
		Properties answer `json:"properties"`
	}
	_ = json.Unmarshal(d, &p) // what is missing is refused
	s.identifies++
	switch {
	case s.refusing:
		c.send(9, false)
	case p.Token != s.cfg.Token || s.revoked:
		c.put(nil, 4004)
	case unknownField("opcode 2", fields(d)) != "":
		s.strange = append(s.strange, "identify: "+unknownField("opcode 2", fields(d)))
		c.put(nil, 4002)
	case p.Properties == nil:
		c.put(nil, 4002)
	case p.Intents == 0 || p.Intents&^knownIntents != 0:
		c.put(nil, 4013)
	case slices.ContainsFunc(slices.Collect(maps.Values(s.sessions)), func(x *session) bool { return x.on == c }):
		c.put(nil, 4005)
	case p.Intents&intentContent != 0 && s.cfg.NoContent:
		c.put(nil, 4014)
	case !s.identified.IsZero() && time.Since(s.identified) < 5*time.Second:
		s.hasty++
		c.send(9, false)
	case s.tomorrow() > 0 && len(s.day) >= s.cfg.Sessions:
		s.revoked = true // Discord resets the token
		s.drop(4004)
	default:
		s.identified = time.Now()
		x := s.begin(p.Intents)
		x.on = c
		guilds := []answer{}
		seen := make(map[string]bool)
		for _, ch := range s.channels {
			if ch.guild != "" && !ch.gone && !seen[ch.guild] {
				seen[ch.guild] = true
				guilds = append(guilds, answer{"id": ch.guild, "unavailable": true})
			}
		}
		x.dispatch("READY", answer{
			"v": 10, "user": s.bot(), "guilds": guilds, "session_id": x.id, "resume_gateway_url": s.address(c), "application": answer{"id": s.cfg.Bot},
		})
		for id := range seen {
			x.dispatch("GUILD_CREATE", s.guildOf(id))
		}
	}
}

// address is where the gateway is, as the connection found it. The lock is held.
func (s *Server) address(*socket) string { return "ws://" + s.host + "/gateway" }

// begin makes a session. The lock is held.
func (s *Server) begin(intents int) *session {
	for _, x := range s.sessions { // one bot, one session
		x.ended = true
	}
	s.started++
	if s.tomorrow() == 0 {
		s.day = nil
	}
	s.day = append(s.day, time.Now())
	x := &session{id: s.next("session-"), intents: intents, left: time.Now()}
	s.sessions[x.id] = x
	return x
}

// tomorrow is how long the day lasts in which sessions are counted. The lock is held.
func (s *Server) tomorrow() time.Duration {
	if len(s.day) == 0 {
		return 0
	}
	return max(0, 24*time.Hour-time.Since(s.day[0]))
}

// fields are those of a payload.
func fields(d json.RawMessage) (of answer) {
	_ = json.Unmarshal(d, &of) // or none
	return of
}

// Session starts a session without a connection, as one that an earlier process left, and
// returns its id and sequence. Host is where the gateway is reached.
func (s *Server) Session(host string, intents int) (id string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
	x := s.begin(intents)
	x.seq = 1 // READY
	return x.id, x.seq
}

// dispatch adds an event. The lock of the server is held.
func (x *session) dispatch(t string, d any) {
	if x.ended {
		return
	}
	x.seq++
	b, err := json.Marshal(answer{"op": 0, "t": t, "s": x.seq, "d": d})
	if err != nil {
		panic("discordtest: event: " + err.Error()) // a mistake of the test
	}
	x.events = append(x.events, event{x.seq, b})
	if x.on != nil {
		x.on.put(b, 0)
	}
}

func (s *Server) resume(c *socket, d json.RawMessage) {
	var p struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int64  `json:"seq"`
	}
	_ = json.Unmarshal(d, &p) // what is missing is refused
	x := s.sessions[p.Session]
	switch {
	case unknownField("opcode 6", fields(d)) != "":
		s.strange = append(s.strange, "resume: "+unknownField("opcode 6", fields(d)))
		c.put(nil, 4002)
	case p.Token != s.cfg.Token || s.revoked:
		c.put(nil, 4004)
	case x == nil || x.ended || x.on == nil && time.Since(x.left) > s.cfg.Keep || p.Seq < x.named:
		if x != nil {
			x.ended = true
		}
		c.send(9, false)
	case p.Seq > x.seq:
		c.put(nil, 4007)
	default:
		if x.on != nil {
			go x.on.close()
		}
		s.resumed++
		x.on = c
		for _, e := range x.events {
			if e.seq > p.Seq {
				c.put(e.frame, 0)
			}
		}
		x.dispatch("RESUMED", answer{})
	}
}
