package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A nonce is what a message of the bot was created with.
type nonce struct {
	message *Message
	at      time.Time
}

const nonceKept = 5 * time.Minute

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// ServeHTTP serves the gateway, the files and the REST API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.host = r.Host
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/gateway":
		s.serveGateway(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/files/"):
		s.serveFile(w, r)
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v10")
	if !ok {
		s.odd(r, "address")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	c, err := readCall(r)
	if err != nil {
		return // the client is gone
	}
	c.parts = strings.Split(strings.Trim(path, "/"), "/")
	s.serve(w, r, c)
}

// A restCall is one call.
type restCall struct {
	parts []string
	body  answer
	list  []any
	files []File
}

// readCall reads the body of a call: JSON, or a form with payload_json and files.
func readCall(r *http.Request) (c restCall, err error) {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return c, err
		}
		if json.Unmarshal(data, &c.body) != nil {
			_ = json.Unmarshal(data, &c.list) // or neither
		}
		return c, nil
	}
	form := multipart.NewReader(r.Body, params["boundary"])
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return c, err
		}
		if p.FormName() == "payload_json" {
			_ = json.Unmarshal(data, &c.body) // what is missing is refused
			continue
		}
		c.files = append(c.files, File{Name: p.FileName(), Type: "application/octet-stream", Data: data})
	}
}

// odd notes a call that Discord does not document.
func (s *Server) odd(r *http.Request, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strange = append(s.strange, r.Method+" "+r.URL.Path+": "+why)
}

// routeOf names the route of a call, and its channel.
func (c restCall) routeOf(method string) (route, channel string) {
	p := c.parts
	is := func(want ...string) bool {
		if len(p) != len(want) {
			return false
		}
		for i, w := range want {
			if w != "*" && p[i] != w {
				return false
			}
		}
		return true
	}
	if len(p) > 1 && p[0] == "channels" {
		channel = p[1]
	}
	switch {
	case is("gateway", "bot"), is("users", "@me"), is("applications", "@me"):
		return method + " " + p[0], ""
	case is("applications", "*", "commands"):
		return method + " commands", ""
	case is("guilds", "*", "threads", "active"):
		return method + " threads", p[1] // of the server
	case is("channels", "*"):
		return method + " channel", channel
	case is("channels", "*", "messages"):
		return method + " messages", channel
	case is("channels", "*", "messages", "*"):
		return method + " message", channel
	case is("channels", "*", "messages", "*", "reactions", "*", "@me"):
		return method + " reaction", channel
	case is("channels", "*", "typing"):
		return method + " typing", channel
	case is("interactions", "*", "*", "callback"):
		return method + " callback", ""
	case is("webhooks", "*", "*", "messages", "@original"):
		return method + " original", ""
	}
	return "", ""
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, c restCall) {
	s.mu.Lock()
	route, channel := c.routeOf(r.Method)
	s.calls[route]++
	f, down := s.strikes(route, channel), s.down || s.closed
	s.mu.Unlock()
	if down || f.Drop {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(f.Takes):
	case <-s.hangs:
	case <-r.Context().Done():
	}
	open := strings.HasSuffix(route, " callback") || strings.HasSuffix(route, " original")
	s.mu.Lock()
	var status int
	var result any
	switch wait := time.Duration(0); {
	case !open && (r.Header.Get("Authorization") != "Bot "+s.cfg.Token || s.revoked):
		status, result = refuse(http.StatusUnauthorized, 0, "401: Unauthorized")
	case route == "":
		s.strange = append(s.strange, r.Method+" "+r.URL.Path)
		status, result = refuse(http.StatusNotFound, 0, "404: Not Found")
	case f.RetryAfter > 0:
		if wait = f.RetryAfter; !f.Global && s.limits[route+"/"+channel] != nil {
			s.limits[route+"/"+channel].until = time.Now().Add(wait)
		}
		status, result = tooMany(w.Header(), wait, f.Global)
	case f.Status != 0:
		status, result = refuse(f.Status, f.Code, "refused")
	default:
		if !open {
			if wait = s.crowded(); wait > 0 {
				status, result = tooMany(w.Header(), wait, true)
				break
			}
			wait = s.limited(w.Header(), route, channel)
		}
		if wait > 0 {
			status, result = tooMany(w.Header(), wait, false)
			break
		}
		if found := c.undocumented(route, r.URL.Query()); found != "" {
			s.strange = append(s.strange, route+": "+found)
			status, result = refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
			break
		}
		status, result = s.act(r, route, c)
	}
	s.change()
	s.mu.Unlock()
	if f.Lost {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if result != nil {
		_ = json.NewEncoder(w).Encode(result) // the client may be gone
	}
}

func refuse(status, code int, message string) (int, any) {
	return status, answer{"message": message, "code": code}
}

func tooMany(h http.Header, wait time.Duration, global bool) (int, any) {
	scope := "user"
	if global {
		scope = "global"
		h.Set("X-RateLimit-Global", "true")
	}
	h.Set("X-RateLimit-Scope", scope)
	h.Set("Retry-After", number(wait.Seconds()))
	return http.StatusTooManyRequests, answer{"message": "You are being rate limited.", "retry_after": wait.Seconds(), "global": global}
}

// act does the work of a call. The lock is held.
func (s *Server) act(r *http.Request, route string, c restCall) (int, any) {
	switch route {
	case "GET gateway":
		return http.StatusOK, answer{
			"url": "ws://" + r.Host + "/gateway", "shards": 1,
			"session_start_limit": answer{"total": s.cfg.Sessions, "remaining": max(0, s.cfg.Sessions-len(s.day)), "reset_after": s.tomorrow().Milliseconds(), "max_concurrency": 1},
		}
	case "GET users":
		return http.StatusOK, s.bot()
	case "GET applications":
		flags := 1 << 19
		if s.cfg.NoContent && !s.cfg.ClaimContent {
			flags = 0
		}
		return http.StatusOK, answer{"id": s.cfg.Bot, "name": "claybot", "flags": flags, "bot": s.bot()}
	case "GET threads":
		return http.StatusOK, answer{"threads": s.guildOf(c.parts[1])["threads"], "members": []answer{}}
	case "PUT commands":
		if !commandsFit(c.list) {
			return refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
		}
		s.register(c.list)
		return http.StatusOK, s.commands
	case "POST callback":
		status, code := s.respond(c.parts[1], c.parts[2], c.body)
		if code != 0 {
			return refuse(status, code, "Unknown interaction")
		}
		return status, nil
	case "DELETE original":
		if a := s.asks[c.parts[2]]; a == nil || !a.done || time.Since(a.at) > 15*time.Minute {
			return refuse(http.StatusNotFound, 10015, "Unknown Webhook")
		}
		return http.StatusNoContent, nil
	}
	ch := s.channels[c.parts[1]]
	switch {
	case ch == nil:
		return refuse(http.StatusNotFound, 10003, "Unknown Channel")
	case ch.gone && ch.parent == "" && ch.guild != "":
		return refuse(http.StatusForbidden, 50001, "Missing Access")
	case ch.gone:
		return refuse(http.StatusNotFound, 10003, "Unknown Channel")
	}
	return s.onChannel(r, route, ch, c)
}

// onChannel does the work of a call below a channel. The lock is held.
func (s *Server) onChannel(r *http.Request, route string, ch *channel, c restCall) (int, any) {
	var m *Message
	if ch.hidden && (route == "GET message" || route == "PUT reaction") {
		return refuse(http.StatusForbidden, 50013, "Missing Permissions")
	}
	if len(c.parts) > 3 {
		if m = ch.find(c.parts[3]); m == nil {
			return refuse(http.StatusNotFound, 10008, "Unknown Message")
		}
	}
	switch route {
	case "GET channel":
		return http.StatusOK, ch.object()
	case "GET messages":
		return s.history(ch, r.URL.Query())
	case "GET message":
		return http.StatusOK, s.object(ch, m)
	case "POST typing":
		s.typing[ch.id]++
		return http.StatusNoContent, nil
	case "PUT reaction", "DELETE reaction":
		emoji, err := url.PathUnescape(c.parts[5])
		if err != nil || emoji == "" {
			return refuse(http.StatusBadRequest, 10014, "Unknown Emoji")
		}
		m.reactions[emoji] = nil
		if route == "PUT reaction" {
			m.reactions[emoji] = []string{s.cfg.Bot}
		}
		return http.StatusNoContent, nil
	case "POST messages":
		return s.create(ch, c)
	case "PATCH message":
		if m.Author != s.cfg.Bot {
			return refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
		}
		if !bodyFits(c.body, c.files, true) {
			return refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
		}
		if text, ok := c.body["content"].(string); ok {
			m.Content = text
		}
		if rows, ok := c.body["components"].([]any); ok {
			m.Components = rows
		}
		m.Edits, m.edited = m.Edits+1, time.Now()
		s.emit(ch.intent(intentGuildMessages, intentDirectMessages), "MESSAGE_UPDATE", s.eventOf(ch, m))
		return http.StatusOK, s.object(ch, m)
	}
	s.strange = append(s.strange, route)
	return refuse(http.StatusMethodNotAllowed, 0, "405: Method Not Allowed")
}

// create creates a message of the bot. The lock is held.
func (s *Server) create(ch *channel, c restCall) (int, any) {
	switch {
	case ch.closed && ch.guild == "":
		return refuse(http.StatusForbidden, 50007, "Cannot send messages to this user")
	case ch.closed:
		return refuse(http.StatusForbidden, 50013, "Missing Permissions")
	case !filesFit(c.files):
		return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
	case !bodyFits(c.body, c.files, false):
		return refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
	}
	m := &Message{Channel: ch.id, Author: s.cfg.Bot}
	m.Content, _ = c.body["content"].(string)
	m.Content = strings.TrimSpace(m.Content)
	m.Nonce, _ = c.body["nonce"].(string)
	m.Components, _ = c.body["components"].([]any)
	if known, ok := s.nonces[m.Nonce]; ok && m.Nonce != "" && c.body["enforce_nonce"] == true && time.Since(known.at) < nonceKept {
		return http.StatusOK, s.object(s.channels[known.message.Channel], known.message)
	}
	if ref, ok := c.body["message_reference"].(answer); ok {
		if ch.hidden {
			return refuse(http.StatusBadRequest, 160002, "Cannot reply without permission to read message history")
		}
		id, _ := ref["message_id"].(string)
		switch found := ch.find(id); {
		case found != nil:
			m.ReplyTo = id
		case ref["fail_if_not_exists"] != false:
			return refuse(http.StatusBadRequest, 50035, "Unknown message")
		}
	}
	for _, f := range c.files {
		f.ID = s.id()
		m.Files = append(m.Files, f)
	}
	s.store(ch, m)
	s.nonces[m.Nonce] = nonce{m, time.Now()}
	o := s.object(ch, m)
	o["nonce"] = m.Nonce
	return http.StatusOK, o
}

// history reads messages of a channel: the newest before one, or the first after one, with the
// newest first in either case. The lock is held.
func (s *Server) history(ch *channel, args url.Values) (int, any) {
	limit, err := strconv.Atoi(args.Get("limit"))
	if args.Get("limit") == "" {
		limit, err = 50, nil
	}
	if err != nil || limit < 1 || limit > 100 {
		return refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
	}
	older := func(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
	var all []*Message
	for _, m := range ch.messages {
		if m.Deleted || args.Get("after") != "" && !older(args.Get("after"), m.ID) || args.Get("before") != "" && !older(m.ID, args.Get("before")) {
			continue
		}
		all = append(all, m)
	}
	if args.Get("after") != "" {
		all = all[:min(limit, len(all))]
	} else {
		all = all[max(0, len(all)-limit):]
	}
	page := []answer{}
	if ch.hidden {
		return http.StatusOK, page
	}
	for _, m := range slices.Backward(all) {
		page = append(page, s.object(ch, m))
	}
	return http.StatusOK, page
}

// fileURL is the signed address of a file. The lock is held.
func (s *Server) fileURL(c *channel, m *Message, f File) string {
	return fmt.Sprintf("http://%s/files/%s/%s/%s/%s?ex=%d", s.host, c.id, m.ID, f.ID, url.PathEscape(f.Name), time.Now().Add(24*time.Hour).Unix())
}

func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := strings.Split(r.URL.Path, "/")
	expires, _ := strconv.ParseInt(r.FormValue("ex"), 10, 64)
	if r.Header.Get("Authorization") != "" {
		s.strange = append(s.strange, "the token was sent to the servers of files")
	}
	if len(p) != 6 || s.channels[p[2]] == nil || time.Now().Unix() > expires {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if m := s.channels[p[2]].find(p[3]); m != nil {
		for _, f := range m.Files {
			if f.ID == p[4] {
				_, _ = w.Write(f.Data) // the client may be gone
				return
			}
		}
	}
	w.WriteHeader(http.StatusNotFound)
}
