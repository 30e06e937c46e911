package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	server = "300000000000000001"
	group  = "500000000000000001"
	direct = "400000000000000001"
	person = "200000000000000001"
)

// open is a platform with a channel and a direct chat.
func open(cfg Config) *Server {
	s := New(cfg)
	s.AddChannel(server, group)
	s.AddDirect(direct, person)
	return s
}

// call makes a call of the bot.
func call(t *testing.T, s *Server, method, path, body string) (status int, got answer, h http.Header) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "/api/v10"+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bot "+Token)
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	_ = json.Unmarshal(w.Body.Bytes(), &got) // a list, or nothing
	return w.Code, got, w.Header()
}

// quiet is a body with its mentions ruled out.
func quiet(fields string) string { return `{"allowed_mentions":{"parse":[]},` + fields + `}` }

// Each parameter that Discord does not document is refused and noted.
func TestUnknownParameters(t *testing.T) {
	const messages = "/channels/" + group + "/messages"
	row := func(component string) string {
		return quiet(`"content":"x","components":[{"type":1,"components":[` + component + `]}]`)
	}
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", messages, quiet(`"content":"x"`), ""},
		{"POST", messages, quiet(`"content":"x","text":"y"`), "POST messages: field text of POST messages"},
		{"POST", messages, `{"content":"x","allowed_mentions":{"parse":[],"everyone":true}}`, "POST messages: field everyone of allowed_mentions"},
		{"POST", messages, quiet(`"content":"x","message_reference":{"id":"1"}`), "POST messages: field id of message_reference"},
		{"POST", messages, quiet(`"content":"x","attachments":[{"id":0,"name":"a"}]`), "POST messages: field name of attachments"},
		{"POST", messages, row(`{"type":2,"style":1,"label":"a","custom_id":"a"}`), ""},
		{"POST", messages, row(`{"type":2,"style":1,"text":"a","custom_id":"a"}`), "POST messages: field text of component 2"},
		{"POST", messages, row(`{"type":3,"custom_id":"a","options":[{"label":"a","value":"a","text":"a"}]}`), "POST messages: field text of options of menu"},
		{"POST", messages, row(`{"type":99,"custom_id":"a"}`), "POST messages: component 99"},
		{"PATCH", messages + "/1", quiet(`"content":"x","nonce":"1"`), "PATCH message: field nonce of PATCH message"},
		{"GET", messages + "?limit=5&after=1", "", ""},
		{"GET", messages + "?count=5", "", "GET messages: query parameter count"},
		{"GET", messages + "?after=1&before=2", "", "GET messages: before, after and around are mutually exclusive"},
		{"GET", "/channels/" + group + "?with_counts=1", "", "GET channel: query parameter with_counts"},
		{"PUT", "/applications/" + Bot + "/commands", `[{"name":"a","description":"b","type":1,"options":[{"type":3,"name":"text","description":"c"}]}]`, ""},
		{"PUT", "/applications/" + Bot + "/commands", `[{"name":"a","help":"b"}]`, "PUT commands: field help of PUT commands"},
		{"PUT", "/applications/" + Bot + "/commands", `[{"name":"a","description":"b","options":[{"help":"c"}]}]`, "PUT commands: field help of options"},
		{"POST", "/channels/" + group + "/typing", `{"for":10}`, "POST typing: field for of POST typing"},
		{"POST", "/interactions/1/x/callback", `{"type":4,"data":{"text":"x"}}`, "POST callback: field text of data 4"},
		{"POST", "/interactions/1/x/callback", `{"type":5,"data":{"content":"x"}}`, "POST callback: field content of data 5"},
		{"POST", "/interactions/1/x/callback", `{"type":6,"data":{}}`, "POST callback: data 6"},
		{"POST", "/interactions/1/x/callback", `{"type":9,"data":{"name":"x"}}`, "POST callback: field name of data 9"},
		{"GET", "/guilds/" + server + "/channels", "", "GET /api/v10/guilds/" + server + "/channels"},
	} {
		s := open(Config{})
		status, _, _ := call(t, s, tt.method, tt.path, tt.body)
		if got := strings.Join(s.Strange(), ", "); got != tt.want || (status < 300) != (tt.want == "") {
			t.Errorf("%s %s %s: %d, strange: %q, want %q", tt.method, tt.path, tt.body, status, got, tt.want)
		}
		s.Close()
	}
}

// Messages, forms and commands have the limits that Discord documents, each inclusive.
func TestLimitsOfContents(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	list := func(n int, one string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(one, "#", fmt.Sprint(i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	with := func(components string) string { return quiet(`"content":"x","components":` + components) }
	const button, menuOf = `{"type":2,"style":1,"label":"a","custom_id":"#"}`, `{"type":3,"custom_id":"m","options":`
	row := func(components string) string { return `[{"type":1,"components":` + components + `}]` }
	for name, tt := range map[string]struct{ fits, not string }{
		"text":           {quiet(`"content":"` + long(2000) + `"`), quiet(`"content":"` + long(2001) + `"`)},
		"no content":     {quiet(`"content":"x"`), quiet(`"content":""`)},
		"nonce":          {quiet(`"content":"x","nonce":"` + long(25) + `"`), quiet(`"content":"x","nonce":"` + long(26) + `"`)},
		"flags":          {quiet(`"content":"x","flags":4`), quiet(`"content":"x","flags":64`)},
		"mentions":       {quiet(`"content":"x"`), `{"content":"x"}`},
		"embeds":         {quiet(`"content":"x","embeds":` + list(10, `{"title":"#"}`)), quiet(`"content":"x","embeds":` + list(11, `{"title":"#"}`))},
		"text of embeds": {quiet(`"content":"x","embeds":` + list(2, `{"description":"`+long(3000)+`"}`)), quiet(`"content":"x","embeds":` + list(2, `{"description":"`+long(3001)+`"}`))},
		"rows":           {with(list(5, `{"type":1,"components":[`+button+`]}`)), with(list(6, `{"type":1,"components":[`+button+`]}`))},
		"buttons":        {with(row(list(5, button))), with(row(list(6, button)))},
		"same custom_id": {with(row(list(2, button))), with(row(list(2, strings.ReplaceAll(button, "#", "a"))))},
		"custom_id":      {with(row(list(1, strings.ReplaceAll(button, "#", long(100))))), with(row(list(1, strings.ReplaceAll(button, "#", long(101)))))},
		"label":          {with(row(list(1, strings.ReplaceAll(button, `"a"`, `"`+long(80)+`"`)))), with(row(list(1, strings.ReplaceAll(button, `"a"`, `"`+long(81)+`"`))))},
		"style":          {with(row(list(1, button))), with(row(list(1, strings.ReplaceAll(button, `"style":1`, `"style":7`))))},
		"options":        {with(row(`[` + menuOf + list(25, `{"label":"#","value":"#"}`) + `}]`)), with(row(`[` + menuOf + list(26, `{"label":"#","value":"#"}`) + `}]`))},
		"same value":     {with(row(`[` + menuOf + list(2, `{"label":"#","value":"#"}`) + `}]`)), with(row(`[` + menuOf + list(2, `{"label":"#","value":"a"}`) + `}]`))},
		"min_values":     {with(row(`[` + menuOf + list(2, `{"label":"#","value":"#"}`) + `,"min_values":2,"max_values":2}]`)), with(row(`[` + menuOf + list(2, `{"label":"#","value":"#"}`) + `,"min_values":3}]`))},
		"menu alone":     {with(row(`[` + menuOf + `[{"label":"a","value":"a"}]}]`)), with(row(`[` + menuOf + `[{"label":"a","value":"a"}]},` + button + `]`))},
	} {
		for body, want := range map[string]int{tt.fits: http.StatusOK, tt.not: http.StatusBadRequest} {
			s := open(Config{})
			if status, got, _ := call(t, s, "POST", "/channels/"+group+"/messages", body); status != want || len(s.Strange()) > 0 || want == 400 && got["code"] != 50035.0 {
				t.Errorf("%s: %d %v, want %d; strange: %q", name, status, got, want, s.Strange())
			}
			s.Close()
		}
	}
	if !filesFit([]File{{Data: make([]byte, 10<<20)}, {Data: make([]byte, 10<<20)}}) || filesFit([]File{{Data: make([]byte, 10<<20+1)}}) || filesFit(slices.Repeat([]File{{Data: make([]byte, 9<<20)}}, 3)) {
		t.Error("sizes of files")
	}
	form := func(title, label string) bool {
		var data answer
		if err := json.Unmarshal([]byte(`{"custom_id":"a","title":"`+title+`","components":[{"type":18,"label":"`+label+`","component":{"type":4,"style":2,"custom_id":"b","max_length":4000}}]}`), &data); err != nil {
			t.Fatal(err)
		}
		return formFits(data)
	}
	if !form(long(45), long(45)) || form(long(46), "a") || form("a", long(46)) || form("", "a") {
		t.Error("forms")
	}
}

// A channel has a bucket of its own for messages, and the bot a number of calls in a second; headers
// say so, and a 429 how long to wait.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(Config{})
		defer s.Close()
		send := func(channel string) (int, answer, http.Header) {
			return call(t, s, "POST", "/channels/"+channel+"/messages", quiet(`"content":"x"`))
		}
		for left := 4; left >= 0; left-- {
			status, _, h := send(group)
			if status != http.StatusOK || h.Get("X-RateLimit-Remaining") != fmt.Sprint(left) || h.Get("X-RateLimit-Limit") != "5" || h.Get("X-RateLimit-Reset-After") != "5" || h.Get("X-RateLimit-Bucket") == "" {
				t.Errorf("%d left: %d %v", left, status, h)
			}
		}
		status, got, h := send(group)
		if status != http.StatusTooManyRequests || got["retry_after"] != 5.0 || got["global"] != false || h.Get("X-RateLimit-Scope") != "user" || h.Get("Retry-After") != "5" {
			t.Errorf("sixth: %d %v %v", status, got, h)
		}
		if status, _, _ = send(direct); status != http.StatusOK {
			t.Errorf("in another channel: %d", status)
		}
		time.Sleep(5 * time.Second)
		if status, _, _ = send(group); status != http.StatusOK {
			t.Errorf("five seconds later: %d", status)
		}
		time.Sleep(time.Second)
		for i := range 51 {
			status, got, h = call(t, s, "GET", "/channels/"+group, "")
			if (status == http.StatusOK) != (i < 50) {
				t.Fatalf("call %d in one second: %d", i, status)
			}
		}
		if got["global"] != true || h.Get("X-RateLimit-Global") != "true" || h.Get("X-RateLimit-Scope") != "global" {
			t.Errorf("of the bot: %v %v", got, h)
		}
		if status, _, _ = call(t, s, "POST", "/interactions/1/x/callback", `{"type":6}`); status != http.StatusNotFound {
			t.Errorf("interactions have no limit of the bot: %d", status)
		}
		time.Sleep(time.Second)
		if status, _, _ = call(t, s, "GET", "/channels/"+direct, ""); status != http.StatusOK {
			t.Errorf("a second later: %d", status)
		}
	})
}

// A nonce is enforced where the bot asks for it, for some minutes; messages that are read show none.
func TestNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(Config{})
		defer s.Close()
		send := func(text string, enforce bool) string {
			t.Helper()
			status, got, _ := call(t, s, "POST", "/channels/"+direct+"/messages", quiet(fmt.Sprintf(`"content":%q,"nonce":"n","enforce_nonce":%t`, text, enforce)))
			id, _ := got["id"].(string)
			if status != http.StatusOK || id == "" {
				t.Fatalf("%d %v", status, got)
			}
			return id
		}
		first := send("one", true)
		time.Sleep(nonceKept - time.Second)
		if again := send("two", true); again != first {
			t.Errorf("within the window: %s, want %s", again, first)
		}
		if got := s.Sent(direct); len(got) != 1 || got[0].Content != "one" {
			t.Errorf("sent: %+v", got)
		}
		time.Sleep(time.Second)
		later := send("three", true)
		if later == first || send("four", false) == later {
			t.Error("after the window, or not enforced: the same message")
		}
		if _, got, _ := call(t, s, "GET", "/channels/"+direct+"/messages/"+first, ""); got["id"] != first || got["nonce"] != nil {
			t.Errorf("read: %v", got)
		}
	})
}

// plug is a connection of the bot without a network.
func plug(s *Server) *socket {
	c := &socket{wake: make(chan struct{}, 1), closed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = append(s.sockets, c)
	return c
}

// took returns the events and opcodes that a connection got, or the code with which it was closed.
func (c *socket) took() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		var p struct {
			Op int    `json:"op"`
			T  string `json:"t"`
		}
		_ = json.Unmarshal(f, &p) // its own
		if all = append(all, p.T); p.T == "" {
			all[len(all)-1] = fmt.Sprint(p.Op)
		}
	}
	if c.frames = nil; c.code != 0 {
		return []string{fmt.Sprint(c.code)}
	}
	return all
}

func identify(intents int, fields string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"token":%q,"intents":%d,"properties":{"os":"linux"}%s}`, Token, intents, fields))
}

// Events follow the intents; contents of servers need one of their own, unless they mention the bot.
func TestIntents(t *testing.T) {
	const mention = "<@" + Bot + "> x"
	for name, tt := range map[string]struct {
		intents int
		text    string
		want    string // the events, and the content that is shown
	}{
		"all":                {intentGuilds | intentGuildMessages | intentGuildReactions | intentDirectMessages | intentDirectReactions | intentContent, "x", "MESSAGE_CREATE MESSAGE_REACTION_ADD MESSAGE_CREATE MESSAGE_REACTION_ADD: x x"},
		"servers":            {intentGuildMessages | intentContent, "x", "MESSAGE_CREATE: x"},
		"direct":             {intentDirectMessages, "x", "MESSAGE_CREATE: x"},
		"reactions alone":    {intentDirectReactions, "x", "MESSAGE_REACTION_ADD: "},
		"no content":         {intentGuildMessages | intentDirectMessages, "x", "MESSAGE_CREATE MESSAGE_CREATE:  x"},
		"mention":            {intentGuildMessages, mention, "MESSAGE_CREATE: " + mention},
		"mention in code":    {intentGuildMessages, "`" + mention + "`", "MESSAGE_CREATE: "},
		"servers themselves": {intentGuilds, "x", ": "},
	} {
		s := open(Config{})
		c := plug(s)
		s.received(c, 2, identify(tt.intents, ""))
		if got := fmt.Sprint(c.took()); got != "[READY GUILD_CREATE]" {
			t.Errorf("%s: %s", name, got)
		}
		var contents, events []string
		for _, channel := range []string{group, direct} {
			s.React(channel, s.Write(Post{Channel: channel, User: person, Text: tt.text}), person, "👍", false)
		}
		c.mu.Lock()
		for _, f := range c.frames {
			var p struct{ D answer }
			_ = json.Unmarshal(f, &p) // its own
			if text, ok := p.D["content"].(string); ok {
				contents = append(contents, text)
			}
		}
		c.mu.Unlock()
		events = c.took()
		if got := strings.Join(events, " ") + ": " + strings.Join(contents, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		s.part(c)
		s.Close()
	}
}

// Identifies are refused as Discord refuses them: by their intents and fields, within five seconds
// of another one, and beyond those of a day, which costs the bot its token.
func TestIdentify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Sessions: 2, NoContent: true})
		ask := func(op int, d json.RawMessage) string {
			c := plug(s)
			defer s.part(c)
			s.received(c, op, d)
			return strings.Join(c.took(), " ")
		}
		for _, tt := range []struct {
			op    int
			d     json.RawMessage
			after time.Duration
			want  string
		}{
			{2, json.RawMessage(`{"token":"x","intents":1,"properties":{}}`), 0, "4004"},
			{2, identify(intentContent, ""), 0, "4014"},
			{2, identify(0, ""), 0, "4013"},
			{2, identify(1<<30, ""), 0, "4013"},
			{2, identify(intentGuilds, `,"version":10`), 0, "4002"},
			{2, identify(intentGuilds, ""), 0, "READY"},
			{2, identify(intentGuilds, ""), 4 * time.Second, "9"},
			{2, identify(intentGuilds, ""), time.Second, "READY"},
			{6, json.RawMessage(`{"token":"` + Token + `","session_id":"x","seq":1}`), 0, "9"},
			{6, json.RawMessage(`{"token":"` + Token + `","session_id":"session-2","seq":9}`), 0, "4007"},
			{6, json.RawMessage(`{"token":"` + Token + `","session_id":"session-2","seq":1}`), 0, "RESUMED"},
			{2, identify(intentGuilds, ""), time.Minute, "4004"},
		} {
			time.Sleep(tt.after)
			if got := ask(tt.op, tt.d); got != tt.want {
				t.Errorf("%s after %s: %s, want %s", tt.d, tt.after, got, tt.want)
			}
		}
		if status, _, _ := call(t, s, "GET", "/gateway/bot", ""); status != http.StatusUnauthorized {
			t.Errorf("after too many sessions in a day: %d", status)
		}

		s = New(Config{Sessions: 1})
		if got := ask(2, identify(intentGuilds, "")); got != "READY" {
			t.Errorf("first: %s", got)
		}
		_, got, _ := call(t, s, "GET", "/gateway/bot", "")
		if limit, _ := got["session_start_limit"].(answer); limit["remaining"] != 0.0 || limit["reset_after"] != 86_400_000.0 {
			t.Errorf("limit %v", got)
		}
		time.Sleep(24 * time.Hour)
		if got := ask(2, identify(intentGuilds, "")); got != "READY" {
			t.Errorf("a day later: %s", got)
		}
		c := plug(s)
		for range maxPayloads {
			s.received(c, 1, json.RawMessage("null"))
		}
		if got := c.took(); len(got) != maxPayloads {
			t.Errorf("%d heartbeats in a minute are acknowledged", len(got))
		}
		if s.received(c, 1, json.RawMessage("null")); fmt.Sprint(c.took()) != "[4008]" {
			t.Error("another one is taken as well")
		}
	})
}

// An interaction takes one response, within three seconds, and its token lasts 15 minutes.
func TestInteractions(t *testing.T) {
	const thinking = `{"type":5,"data":{"flags":64}}`
	for name, tt := range map[string]struct {
		before, after time.Duration // the response, and then the removal of it
		first, second string
		want          string // the statuses and codes of these
	}{
		"in time":      {2 * time.Second, 14 * time.Minute, thinking, "", "204 0, 204 0"},
		"three second": {3 * time.Second, 0, thinking, "", "204 0, 204 0"},
		"too late":     {3*time.Second + time.Millisecond, 0, thinking, "", "404 10062, 404 10015"},
		"token ended":  {2 * time.Second, 15 * time.Minute, thinking, "", "204 0, 404 10015"},
		"twice":        {0, 0, thinking, thinking, "204 0, 400 40060"},
		"of no kind":   {0, 0, `{"type":11}`, thinking, "400 50035, 204 0"},
		"no message":   {0, 0, `{"type":6}`, thinking, "400 50035, 204 0"},
		"bad form":     {0, 0, `{"type":9,"data":{"custom_id":"a","title":"","components":[]}}`, thinking, "400 50035, 204 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(Config{})
			defer s.Close()
			s.Slash(direct, person, "new", "")
			var a *asked
			for _, x := range s.asks {
				a = x
			}
			respond := func(body string) string {
				status, got, _ := call(t, s, "POST", "/interactions/"+a.id+"/"+a.token+"/callback", body)
				code, _ := got["code"].(float64)
				return fmt.Sprint(status, " ", code)
			}
			time.Sleep(tt.before)
			got := respond(tt.first)
			time.Sleep(tt.after)
			if tt.second != "" {
				got += ", " + respond(tt.second)
			} else {
				status, x, _ := call(t, s, "DELETE", "/webhooks/"+Bot+"/"+a.token+"/messages/@original", "")
				code, _ := x["code"].(float64)
				got += fmt.Sprint(", ", status, " ", code)
			}
			if got != tt.want || len(s.Strange()) > 0 {
				t.Errorf("%s: %s, want %s; strange: %q", name, got, tt.want, s.Strange())
			}
		})
	}
}
