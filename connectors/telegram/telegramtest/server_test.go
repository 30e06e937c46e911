package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// post calls a method in memory and returns the status and the answer.
func post(t *testing.T, s *Server, method, params string) (int, map[string]any) {
	t.Helper()
	return postAs(t, s, Token, method, params)
}

func postAs(t *testing.T, s *Server, token, method, params string) (int, map[string]any) {
	t.Helper()
	transport := s.Transport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://telegram.test/bot"+token+"/"+method, strings.NewReader(params))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	var answer map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		t.Fatalf("%s: %q is not JSON", method, body)
	}
	return resp.StatusCode, answer
}

func ids(answer map[string]any) []int64 {
	var out []int64
	list, _ := answer["result"].([]any)
	for _, u := range list {
		out = append(out, int64(u.(map[string]any)["update_id"].(float64)))
	}
	return out
}

func TestOffset(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	first := s.Say(7, 7, "one")
	s.Say(7, 7, "two")
	for range 2 { // returning confirms nothing
		if _, a := post(t, s, "getUpdates", `{}`); len(ids(a)) != 2 {
			t.Fatalf("got %v, want two updates", ids(a))
		}
	}
	if _, a := post(t, s, "getUpdates", `{"limit":1}`); len(ids(a)) != 1 || ids(a)[0] != first {
		t.Fatalf("limit 1: got %v", ids(a))
	}
	body, _ := json.Marshal(map[string]int64{"offset": first + 1})
	if _, a := post(t, s, "getUpdates", string(body)); len(ids(a)) != 1 || ids(a)[0] != first+1 {
		t.Fatalf("offset: got %v", ids(a))
	}
	if _, a := post(t, s, "getUpdates", `{"offset":1}`); len(ids(a)) != 1 {
		t.Fatalf("what was confirmed came back: %v", ids(a))
	}
	if _, a := post(t, s, "getUpdates", `{"offset":-1}`); len(ids(a)) != 1 {
		t.Fatalf("negative offset: got %v", ids(a))
	}
}

func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		start := time.Now()
		if _, a := post(t, s, "getUpdates", `{"timeout":30}`); len(ids(a)) != 0 || time.Since(start) != 30*time.Second {
			t.Errorf("an empty poll took %v, brought %v", time.Since(start), ids(a))
		}
		go func() {
			time.Sleep(5 * time.Second)
			s.Say(7, 7, "hello")
		}()
		start = time.Now()
		if _, a := post(t, s, "getUpdates", `{"timeout":30}`); len(ids(a)) != 1 || time.Since(start) != 5*time.Second {
			t.Errorf("a poll took %v, brought %v", time.Since(start), ids(a))
		}
		time.Sleep(25 * time.Hour)
		if _, a := post(t, s, "getUpdates", `{}`); len(ids(a)) != 0 {
			t.Errorf("an update outlived a day: %v", ids(a))
		}
		s.Close()
	})
}

func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		older := make(chan int)
		go func() {
			status, _ := post(t, s, "getUpdates", `{"timeout":50}`)
			older <- status
		}()
		synctest.Wait()
		if status, _ := post(t, s, "getUpdates", `{}`); status != 200 {
			t.Errorf("a poll that does not wait got %d", status)
		}
		select {
		case status := <-older:
			t.Errorf("a poll that does not wait ended the older one with %d", status)
		default:
		}
		if status, _ := post(t, s, "getUpdates", `{"timeout":1}`); status != 200 {
			t.Errorf("the newer poll got %d", status)
		}
		if status := <-older; status != 409 {
			t.Errorf("the older poll got %d, want 409", status)
		}
		post(t, s, "setWebhook", `{"url":"https://x.test/"}`)
		if status, _ := post(t, s, "getUpdates", `{}`); status != 409 {
			t.Errorf("with a webhook a poll got %d", status)
		}
		post(t, s, "deleteWebhook", `{}`)
		if status, _ := post(t, s, "getUpdates", `{}`); status != 200 {
			t.Errorf("without the webhook a poll got %d", status)
		}
		s.Close()
	})
}

func TestRefusals(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	s.Say(8, 8, "hi")
	s.Block(8, true)
	s.AddPerson(9, "Shy", "")
	s.Say(-5, 7, "hi")
	s.Migrate(-5, -1000000000005)
	s.Say(-6, 7, "hi")
	s.Kick(-6)
	long, _ := json.Marshal(strings.Repeat("😀", 2049))
	tests := []struct {
		name, method, params string
		status               int
		says                 string
	}{
		{"unknown chat", "sendMessage", `{"chat_id":99,"text":"x"}`, 400, "chat not found"},
		{"blocked", "sendMessage", `{"chat_id":8,"text":"x"}`, 403, "blocked by the user"},
		{"never wrote", "sendMessage", `{"chat_id":9,"text":"x"}`, 403, "can't initiate"},
		{"kicked", "sendMessage", `{"chat_id":-6,"text":"x"}`, 403, "kicked"},
		{"migrated", "sendMessage", `{"chat_id":-5,"text":"x"}`, 400, "upgraded"},
		{"empty", "sendMessage", `{"chat_id":7,"text":" \n"}`, 400, "text is empty"},
		{"too long", "sendMessage", `{"chat_id":7,"text":` + string(long) + `}`, 400, "too long"},
		{"bad html", "sendMessage", `{"chat_id":7,"text":"<b>x","parse_mode":"HTML"}`, 400, "can't find end tag"},
		{"unknown mode", "sendMessage", `{"chat_id":7,"text":"x","parse_mode":"Markdown2"}`, 400, "parse_mode"},
		{"unknown topic", "sendMessage", `{"chat_id":7,"text":"x","message_thread_id":4}`, 400, "thread not found"},
		{"reply to nothing", "sendMessage", `{"chat_id":7,"text":"x","reply_parameters":{"message_id":999}}`, 400, "to be replied not found"},
		{"edit nothing", "editMessageText", `{"chat_id":7,"message_id":999,"text":"x"}`, 400, "to edit not found"},
		{"edit a person's", "editMessageText", `{"chat_id":7,"message_id":1,"text":"x"}`, 400, "can't be edited"},
		{"delete nothing", "deleteMessage", `{"chat_id":7,"message_id":999}`, 400, "to delete not found"},
		{"unknown method", "flyAway", `{}`, 404, "Not Found"},
		{"bad command", "setMyCommands", `{"commands":[{"command":"No","description":"x"}]}`, 400, "COMMAND_INVALID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, a := post(t, s, tt.method, tt.params)
			if says, _ := a["description"].(string); status != tt.status || !strings.Contains(says, tt.says) {
				t.Errorf("got %d %v, want %d %s", status, a, tt.status, tt.says)
			}
		})
	}
	if status, _ := postAs(t, s, "1:other", "getMe", `{}`); status != 401 {
		t.Errorf("a wrong token got %d", status)
	}
	if status, _ := postAs(t, s, "nonsense", "getMe", `{}`); status != 404 {
		t.Errorf("a malformed token got %d", status)
	}
}

func TestEdits(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	post(t, s, "sendMessage", `{"chat_id":7,"text":"a <b>b</b>","parse_mode":"HTML"}`)
	if _, a := post(t, s, "editMessageText", `{"chat_id":7,"message_id":2,"text":"a <b>b</b> ","parse_mode":"HTML"}`); !strings.Contains(a["description"].(string), "not modified") {
		t.Errorf("same text: %v", a)
	}
	if status, a := post(t, s, "editMessageText", `{"chat_id":7,"message_id":2,"text":"a b"}`); status != 200 {
		t.Errorf("same text without bold: %v", a)
	}
	if got := s.Sent(7); len(got) != 1 || got[0].Edits != 1 || got[0].Text != "a b" {
		t.Errorf("got %+v", got)
	}
	s.DeleteSent(7, 2)
	if got := s.Sent(7); len(got) != 0 {
		t.Errorf("deleted and shown: %+v", got)
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{ChatRate: 1, ChatBurst: 2})
		s.Say(7, 7, "hi")
		for _, want := range []int{200, 200, 429} {
			if status, a := post(t, s, "sendMessage", `{"chat_id":7,"text":"x"}`); status != want {
				t.Fatalf("got %d %v, want %d", status, a, want)
			}
		}
		if s.Violations() != 0 {
			t.Error("the first 429 is not a violation")
		}
		post(t, s, "sendMessage", `{"chat_id":7,"text":"x"}`)
		if s.Violations() != 1 {
			t.Error("a send during the silence is a violation")
		}
		time.Sleep(time.Second)
		if status, _ := post(t, s, "sendMessage", `{"chat_id":7,"text":"x"}`); status != 200 {
			t.Errorf("after the silence: %d", status)
		}
		s.Close()
	})
}

func TestFaults(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	send := func() int {
		status, _ := post(t, s, "sendMessage", `{"chat_id":7,"text":"x"}`)
		return status
	}
	tests := []struct {
		name   string
		fault  Fault
		status int
		sent   int
	}{
		{"skip", Fault{Method: "sendMessage", Skip: 1, Status: 500}, 200, 1},
		{"status", Fault{}, 500, 1}, // the one skipped to
		{"lost", Fault{Method: "sendMessage", Lost: true}, 0, 2},
		{"dropped", Fault{Method: "sendMessage", Drop: true}, 0, 2},
		{"cut", Fault{Method: "sendMessage", Cut: true}, 0, 3},
		{"other chat", Fault{Method: "sendMessage", Chat: 8, Status: 500}, 200, 4},
	}
	for _, tt := range tests {
		if tt.fault.Method != "" {
			s.Fail(tt.fault)
		}
		if got := send(); got != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.status)
		}
		if got := len(s.Sent(7)); got != tt.sent {
			t.Errorf("%s: %d messages, want %d", tt.name, got, tt.sent)
		}
	}
	if d := s.Duplicates(7); len(d) != 1 || d[0] != "x" {
		t.Errorf("duplicates: %q", d)
	}
	if n := len(s.Journal("sendMessage")); n != 6 || s.Calls("sendmessage") != 6 {
		t.Errorf("journal has %d entries, %d calls", n, s.Calls("sendMessage"))
	}
}

func TestStartAgainAtTheSameAddress(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	first, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if second, err := s.Start(); err != nil || second != first {
		t.Errorf("got %s, %v; want %s", second, err, first)
	}
}

func TestForms(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/bot"+Token+"/sendMessage?parse_mode=HTML", strings.NewReader("chat_id=7&text=123"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := s.WaitSent(context.Background(), 7, 1); err != nil || got[0].Text != "123" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseHTML(t *testing.T) {
	tests := []struct{ in, want, kinds, err string }{
		{in: "a &lt;b&gt; &amp;&quot;&#65;&unknown;", want: `a <b> &"A&unknown;`},
		{in: "<b>x<i>y</i></b>", want: "xy", kinds: "bold italic"},
		{in: "<b>x</>", want: "x", kinds: "bold"},
		{in: `<pre><code class="language-go">x</code></pre>`, want: "x", kinds: "pre"},
		{in: `<a href="https://x.test/?a=1&amp;b=2">t</a>`, want: "t", kinds: "text_link"},
		{in: "<tg-spoiler>x</tg-spoiler>", want: "x", kinds: "spoiler"},
		{in: "😀<b></b>", want: "😀"},
		{in: "<div>x</div>", err: "unsupported start tag"},
		{in: "<b>x</i>", err: "unmatched end tag"},
		{in: "x</b>", err: "unexpected end tag"},
		{in: "<b>x", err: "can't find end tag"},
		{in: "1 < 2", err: "unsupported start tag"},
		{in: "<b", err: "unclosed start tag"},
		{in: `<a href="x`, err: "unclosed start tag"},
		{in: "<span>x</span>", err: "must have class"},
		{in: "<b>x</b", err: "unclosed end tag"},
		{in: `<a "x">y</a>`, err: "empty attribute name"},
	}
	for _, tt := range tests {
		got, entities, err := ParseHTML(tt.in)
		var kinds []string
		for _, e := range entities {
			kinds = append(kinds, e.Type)
		}
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: error %v, want %q", tt.in, err, tt.err)
			}
		case err != nil || got != tt.want || strings.Join(kinds, " ") != tt.kinds:
			t.Errorf("%q: got %q %v %v, want %q %s", tt.in, got, kinds, err, tt.want, tt.kinds)
		}
	}
}

func FuzzParseHTML(f *testing.F) {
	f.Add(`<b>x</b><a href='&#x41;'>😀</a>`)
	f.Fuzz(func(t *testing.T, s string) {
		text, entities, err := ParseHTML(s)
		if err != nil {
			return
		}
		for _, e := range entities {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > utf16Len(text) {
				t.Fatalf("%q: entity %+v outside of %q", s, e, text)
			}
		}
	})
}
