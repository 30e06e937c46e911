package slacktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func plain(text string) string { return fmt.Sprintf(`{"type":"plain_text","text":%q}`, text) }

func section(text string) string {
	return fmt.Sprintf(`{"type":"section","text":{"type":"mrkdwn","text":%q}}`, text)
}

func actions(elements ...string) string {
	return `{"type":"actions","block_id":"b1","elements":[` + strings.Join(elements, ",") + `]}`
}

func list(blocks ...string) string { return "[" + strings.Join(blocks, ",") + "]" }

func many(n int, of func(i int) string) (all []string) {
	for i := range n {
		all = append(all, of(i))
	}
	return all
}

func opts(n int) string {
	return list(many(n, func(i int) string { return fmt.Sprintf(`{"text":%s,"value":"%d"}`, plain(fmt.Sprintf("o%d", i)), i) })...)
}

const okButton = `{"type":"button","action_id":"a1","text":{"type":"plain_text","text":"Go"},"value":"v"}`

// Blocks are refused where Slack refuses them.
func TestCheckBlocks(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, c := range []struct{ blocks, want string }{
		{`null`, ""},
		{`[]`, ""},
		{`{}`, "invalid_blocks_format"},
		{`[7]`, "invalid_blocks_format"},
		{list(section("hi"), `{"type":"divider"}`, actions(okButton)), ""},
		{list(section(long(3000))), ""},
		{list(section(long(3001))), "invalid_blocks"},
		{list(section("")), "invalid_blocks"},
		{list(`{"type":"section"}`), "invalid_blocks"},
		{list(`{"type":"poem"}`), "invalid_blocks"},
		{list(`{"type":"header","text":` + plain(long(151)) + `}`), "invalid_blocks"},
		{list(`{"type":"section","text":{"type":"plain_text","text":"x","verbatim":true}}`), "invalid_blocks"},
		{list(`{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":false}}`), "invalid_blocks"},
		{list(`{"type":"section","text":{"type":"html","text":"x"}}`), "invalid_blocks"},
		{list(`{"type":"context","elements":[` + plain("x") + `]}`), ""},
		{list(`{"type":"context","elements":[]}`), "invalid_blocks"},
		{list(many(50, func(int) string { return section("x") })...), ""},
		{list(many(51, func(int) string { return section("x") })...), "invalid_blocks"},
		{list(many(5, func(int) string { return section(long(2700)) })...), "msg_blocks_too_long"},
		{list(actions(okButton), actions(okButton)), "invalid_blocks"}, // one id twice
		{list(`{"type":"divider","block_id":"` + long(256) + `"}`), "invalid_blocks"},
		{list(`{"type":"divider","block_id":7}`), "invalid_blocks"},
		{list(actions()), "invalid_blocks"},
		{list(actions(okButton, okButton)), "invalid_blocks"},
		{list(actions(many(26, func(i int) string { return strings.Replace(okButton, "a1", fmt.Sprint(i), 1) })...)), "invalid_blocks"},
		{list(actions(strings.Replace(okButton, "Go", long(76), 1))), "invalid_blocks"},
		{list(actions(strings.Replace(okButton, "plain_text", "mrkdwn", 1))), "invalid_blocks"},
		{list(actions(strings.Replace(okButton, `"v"`, `"`+long(2000)+`"`, 1))), ""},
		{list(actions(strings.Replace(okButton, `"v"`, `"`+long(2001)+`"`, 1))), "invalid_blocks"},
		{list(actions(strings.Replace(okButton, `"a1"`, `"`+long(256)+`"`, 1))), "invalid_blocks"},
		{list(actions(strings.Replace(okButton, `"value":"v"`, `"style":"loud"`, 1))), "invalid_blocks"},
		{list(actions(`{"type":"static_select","options":` + opts(100) + `}`)), ""},
		{list(actions(`{"type":"static_select","options":` + opts(101) + `}`)), "invalid_blocks"},
		{list(actions(`{"type":"static_select","options":[]}`)), "invalid_blocks"},
		{list(actions(`{"type":"static_select","options":[{"text":` + plain(long(76)) + `,"value":"1"}]}`)), "invalid_blocks"},
		{list(actions(`{"type":"static_select","options":[{"text":` + plain("x") + `,"value":"` + long(151) + `"}]}`)), "invalid_blocks"},
		{list(actions(`{"type":"static_select","placeholder":` + plain(long(151)) + `,"options":` + opts(1) + `}`)), "invalid_blocks"},
		{list(actions(`{"type":"static_select","initial_option":{"value":"9"},"options":` + opts(2) + `}`)), "invalid_blocks"},
		{list(actions(`{"type":"checkboxes","options":` + opts(11) + `}`)), "invalid_blocks"},
		{list(actions(`{"type":"plain_text_input"}`)), "invalid_blocks"},
		{list(actions(`7`)), "invalid_blocks"},
		{list(`{"type":"section","text":` + plain("x") + `,"accessory":` + okButton + `}`), ""},
		{list(`{"type":"input","label":` + plain("x") + `,"element":{"type":"email_text_input"}}`), "invalid_blocks"}, // of modals
	} {
		err := CheckBlocks([]byte(c.blocks))
		var refused *blockError
		if errors.As(err, &refused); (err != nil) != (c.want != "") || err != nil && refused.code != c.want {
			t.Errorf("%.120s: %v, want %q", c.blocks, err, c.want)
		}
	}
}

func modal(element string) string {
	return `{"type":"modal","callback_id":"cb","private_metadata":"p & q","title":` + plain("T") + `,"submit":` + plain("Send") +
		`,"blocks":[` + section("why?") + `,{"type":"input","block_id":"i1","label":` + plain("L") + `,"element":` + element + `}]}`
}

// So are modals.
func TestCheckView(t *testing.T) {
	const text = `{"type":"plain_text_input","action_id":"x"}`
	for _, c := range []struct {
		view string
		ok   bool
	}{
		{modal(text), true},
		{modal(`{"type":"plain_text_input","min_length":3,"max_length":2}`), false},
		{modal(`{"type":"plain_text_input","max_length":3001}`), false},
		{modal(`{"type":"plain_text_input","max_length":0}`), false},
		{modal(`{"type":"plain_text_input","max_length":2,"initial_value":"abc"}`), false},
		{modal(`{"type":"plain_text_input","initial_value":7}`), false},
		{modal(`{"type":"email_text_input"}`), true},
		{modal(`{"type":"number_input","is_decimal_allowed":true,"min_value":"-1.5","initial_value":"2","max_value":"3"}`), true},
		{modal(`{"type":"number_input","is_decimal_allowed":true,"min_value":"4","max_value":"3"}`), false},
		{modal(`{"type":"number_input","is_decimal_allowed":true,"initial_value":"x"}`), false},
		{modal(`{"type":"number_input","is_decimal_allowed":true,"min_value":4}`), false},
		{modal(`{"type":"number_input"}`), false},
		{modal(`{"type":"datepicker","initial_date":"2026-02-30"}`), false},
		{modal(`{"type":"timepicker","initial_time":"15:04"}`), true},
		{modal(`{"type":"timepicker","initial_time":"25:04"}`), false},
		{modal(`{"type":"datetimepicker","initial_date_time":999999999}`), false},
		{modal(`{"type":"multi_static_select","max_selected_items":0,"options":` + opts(1) + `}`), false},
		{modal(`{"type":"multi_static_select","initial_options":[],"options":` + opts(1) + `}`), false},
		{modal(`{"type":"button","text":` + plain("x") + `}`), false},
		{modal(`null`), false},
		{strings.Replace(modal(text), `"modal"`, `"home"`, 1), false},
		{strings.Replace(modal(text), `"submit"`, `"close"`, 1), false},
		{strings.Replace(modal(text), `"T"`, `"`+strings.Repeat("T", 25)+`"`, 1), false},
		{strings.Replace(modal(text), "p & q", strings.Repeat("p", 3001), 1), false},
		{strings.Replace(modal(text), `"L"`, `""`, 1), false},
		{strings.Replace(modal(text), `"blocks"`, `"bricks"`, 1), false},
		{`{`, false},
	} {
		if err := CheckView([]byte(c.view)); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok %v", c.view, err, c.ok)
		}
	}
	if err := CheckView([]byte(strings.Repeat(" ", 250_001))); err == nil || !strings.HasPrefix(err.Error(), "view_too_large") {
		t.Errorf("large: %v", err)
	}
}

// Blocks stay with their message through edits that do not name them, show in
// history, and are quoted with entities in a button press.
func TestBlocksOfAMessage(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		c.Say("", "C1", "U1", "hello")
		menu := `{"type":"static_select","action_id":"m","options":[{"text":` + plain("A & <B>") + `,"value":"a&b"}]}`
		blocks := list(section("well &amp; good"), actions(okButton, menu))
		if a := c.bot(t, "chat.postMessage", "channel", "C1", "text", "x", "blocks", list(section(""))); a["error"] != "invalid_blocks" {
			t.Errorf("%v", a)
		}
		posted := c.bot(t, "chat.postMessage", "channel", "C1", "blocks", blocks)
		ts, _ := posted["ts"].(string)
		page, _ := c.bot(t, "conversations.history", "channel", "C1")["messages"].([]any)
		if first, _ := page[0].(map[string]any); first["blocks"] == nil {
			t.Errorf("history shows %v", page)
		}
		show := func() Message { return c.Posted("C1")[0] }
		if m := show(); m.Shown() != "well &amp; good" || !slices.Equal(m.Buttons(), []string{"Go"}) || !slices.Equal(m.Options(), []string{"A & <B>"}) {
			t.Errorf("%+v", m)
		}
		if a := c.bot(t, "chat.update", "channel", "C1", "ts", ts, "text", "new"); a["ok"] != true || len(show().Blocks) != 2 {
			t.Errorf("an edit with a text alone: %v, %+v", a, show())
		}
		conn, _ := c.connect(t)
		ack(t, conn, frameOf(t, conn)) // of hello
		if _, err := c.Select("U1", "C1", ts, "A & <B>"); err != nil {
			t.Fatal(err)
		}
		f := frameOf(t, conn)
		p, _ := f["payload"].(map[string]any)
		told := fmt.Sprint(p["actions"], p["message"])
		if f["type"] != "interactive" || f["accepts_response_payload"] != false || !strings.Contains(told, "A &amp; &lt;B&gt;") || !strings.Contains(told, "a&amp;b") || !strings.Contains(told, "well &amp; good") {
			t.Errorf("told %v", f)
		}
		ack(t, conn, f)
		for _, bad := range []func() (string, error){
			func() (string, error) { return c.Click("U1", "C1", ts, "Stay") },
			func() (string, error) { return c.Select("U1", "C1", ts, "C") },
			func() (string, error) { return c.Click("U1", "C1", "1.0", "Go") },
			func() (string, error) { return c.Click("U1", "C9", ts, "Go") },
		} {
			if id, err := bad(); err == nil {
				t.Errorf("pressed nothing: %s", id)
			}
		}
		if a := c.bot(t, "chat.update", "channel", "C1", "ts", ts, "text", "new", "blocks", "[]"); a["ok"] != true || len(show().Blocks) != 0 || show().Shown() != "new" {
			t.Errorf("an edit with no blocks: %v, %+v", a, show())
		}
		closeSocket(t, conn)
	})
}

// newTrigger makes a trigger and returns it.
func (c *client) newTrigger(t *testing.T, user string) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trigger(user)
}

// A trigger works once, and soon.
func TestTriggers(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		view := modal(`{"type":"plain_text_input"}`)
		open := func(trigger, view string) any {
			return c.bot(t, "views.open", "trigger_id", trigger, "view", view)["error"]
		}
		id := c.newTrigger(t, "U1")
		if got := open(id, `{}`); got != "invalid_arguments" {
			t.Errorf("bad view: %v", got)
		}
		if got := open(id, view); got != nil {
			t.Errorf("%v", got)
		}
		if got := open(id, view); got != "exchanged_trigger_id" {
			t.Errorf("again: %v", got)
		}
		if got := open("1.2.3", view); got != "invalid_trigger_id" {
			t.Errorf("unknown: %v", got)
		}
		id = c.newTrigger(t, "U1")
		time.Sleep(3*time.Second + time.Millisecond)
		if got := open(id, view); got != "expired_trigger_id" {
			t.Errorf("late: %v", got)
		}
		v, err := c.WaitModal(t.Context(), "U1")
		if err != nil || v.Title != "T" || v.Text != "why?" || len(v.Inputs) != 1 {
			t.Errorf("%+v, %v", v, err)
		}
		c.Dismiss(v.ID)
		if v, ok := c.Modal("U1"); ok {
			t.Errorf("still open: %+v", v)
		}
	})
}

// What an app acknowledges a modal with decides what becomes of it.
func TestSubmit(t *testing.T) {
	inBubble(t, Config{NoEcho: true, Redeliver: time.Hour}, func(t *testing.T, c *client) {
		conn, _ := c.connect(t)
		c.bot(t, "views.open", "trigger_id", c.newTrigger(t, "U1"), "view", modal(`{"type":"plain_text_input","action_id":"x","min_length":2,"initial_value":"old"}`))
		v, _ := c.Modal("U1")
		for _, r := range []struct {
			name   string
			values map[string]any
			answer any // nil: none at all
			want   string
			told   string
		}{
			{"too short for the client", map[string]any{"L": "a"}, 0, "1 characters", ""},
			{"nothing", map[string]any{"L": ""}, 0, "required", ""},
			{"no such input", map[string]any{"M": "a"}, 0, "the inputs are", ""},
			{"no acknowledgement", nil, nil, ErrNoAnswer.Error(), "old"},
			{"errors", map[string]any{"": "a & b"}, map[string]any{"response_action": "errors", "errors": map[string]string{"i1": "no"}}, "errors map[i1:no]", "a & b"},
			{"errors at no input", nil, map[string]any{"response_action": "errors", "errors": map[string]string{"x": "no"}}, ErrNoAnswer.Error(), "old"},
			{"large", nil, map[string]any{"response_action": "clear", "x": strings.Repeat("x", 16<<10)}, ErrNoAnswer.Error(), "old"},
			{"a text", nil, "clear", ErrNoAnswer.Error(), "old"},
			{"unknown", nil, map[string]any{"response_action": "dance"}, ErrNoAnswer.Error(), "old"},
			{"bad view", nil, map[string]any{"response_action": "update", "view": map[string]any{}}, ErrNoAnswer.Error(), "old"},
			{"view", nil, map[string]any{"response_action": "update", "view": map[string]any{"type": "modal", "title": map[string]any{"type": "plain_text", "text": "T"}, "blocks": []any{}}}, "view T", "old"},
			{"closed", nil, map[string]any{}, "closed", ""},
			{"gone", nil, 0, "no open modal", ""},
		} {
			type result struct {
				s   Submission
				err error
			}
			done := make(chan result, 1)
			go func() {
				s, err := c.Submit(t.Context(), v.ID, r.values)
				done <- result{s, err}
			}()
			if r.answer != 0 {
				f := frameOf(t, conn)
				p, _ := f["payload"].(map[string]any)
				told, _ := p["view"].(map[string]any)
				if f["accepts_response_payload"] != true || told["private_metadata"] != "p &amp; q" && r.told != "" || r.told != "" && !strings.Contains(fmt.Sprint(told["state"]), "value:"+r.told) {
					t.Errorf("%s: told %v", r.name, f)
				}
				if r.answer != nil {
					if err := conn.WriteJSON(map[string]any{"envelope_id": f["envelope_id"], "payload": r.answer}); err != nil {
						t.Error(err)
					}
				}
			}
			got := <-done
			text := ""
			switch {
			case got.err != nil:
				text = got.err.Error()
			case got.s.Closed:
				text = "closed"
			case got.s.View != nil:
				text = "view " + got.s.View.Title
			default:
				text = fmt.Sprint("errors ", got.s.Errors)
			}
			if !strings.Contains(text, r.want) {
				t.Errorf("%s: %s, want %s", r.name, text, r.want)
			}
		}
		closeSocket(t, conn)
	})
}

// What Slack's client takes in each input, and how it is told.
func TestInputs(t *testing.T) {
	for _, c := range []struct {
		element string
		value   any
		want    string // told, or a part of the error
	}{
		{`"type":"email_text_input"`, "a@b", "map[value:a@b]"},
		{`"type":"email_text_input"`, "ab", "email"},
		{`"type":"number_input","min_value":"2","max_value":"4"`, "3.5", "map[value:3.5]"},
		{`"type":"number_input","min_value":"2"`, "1", "min_value"},
		{`"type":"number_input","max_value":"4"`, "5", "max_value"},
		{`"type":"number_input"`, "x", "invalid syntax"},
		{`"type":"datepicker"`, "2026-03-31", "map[selected_date:2026-03-31]"},
		{`"type":"datepicker"`, "31.3.", "cannot parse"},
		{`"type":"timepicker"`, "15:04", "map[selected_time:15:04]"},
		{`"type":"datetimepicker"`, 1700000000, "map[selected_date_time:1700000000]"},
		{`"type":"datetimepicker"`, "now", "not a moment"},
		{`"type":"static_select","options":` + opts(2), "o1", "map[selected_option:map[text:map[text:o1 type:plain_text] value:1]]"},
		{`"type":"static_select","options":` + opts(2), "o2", "no option"},
		{`"type":"checkboxes","options":` + opts(2), []string{"o1", "0"}, "map[selected_options:[map[text:map[text:o1 type:plain_text] value:1] map[text:map[text:o0 type:plain_text] value:0]]]"},
		{`"type":"multi_static_select","max_selected_items":1,"options":` + opts(2), []string{"o1", "o0"}, "at most 1"},
		{`"type":"plain_text_input"`, 7.5, "not a text"},
		{`"type":"plain_text_input","max_length":2`, "abc", "3 characters"},
	} {
		inBubble(t, Config{NoEcho: true}, func(t *testing.T, cl *client) {
			element := "{" + strings.Replace(c.element, `"number_input"`, `"number_input","is_decimal_allowed":true`, 1) + "}"
			if a := cl.bot(t, "views.open", "trigger_id", cl.newTrigger(t, "U1"), "view", modal(element)); a["ok"] != true {
				t.Fatalf("%s: %v", element, a)
			}
			v := slices.Collect(maps.Values(cl.views))[0]
			state, err := v.state(map[string]any{"i1": c.value})
			got := fmt.Sprint(err)
			if err == nil {
				told, _ := state["i1"].(object)[""].(object)
				delete(told, "type")
				got = fmt.Sprint(told)
			}
			if err == nil && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("%s with %v: %s, want %s", element, c.value, got, c.want)
			}
		})
	}
}

// A whisper to one person is not seen by others.
func TestWhisper(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		c.Say("", "C1", "U1", "hello")
		for _, r := range []struct {
			args []string
			want any
		}{
			{[]string{"channel", "C1", "user", "U1", "text", "psst", "thread_ts", "1.0"}, nil},
			{[]string{"channel", "C9", "user", "U1", "text", "psst"}, "channel_not_found"},
			{[]string{"channel", "C1", "text", "psst"}, "user_not_found"},
			{[]string{"channel", "C1", "user", "T9/U1", "text", "psst"}, "user_not_found"},
			{[]string{"channel", "C1", "user", "U1"}, "no_text"},
		} {
			if a := c.bot(t, "chat.postEphemeral", r.args...); a["error"] != r.want {
				t.Errorf("%q: %v, want %v", r.args, a["error"], r.want)
			}
		}
		w, err := c.WaitWhisper(t.Context(), "U1", func(w Whisper) bool { return w.Text == "psst" })
		if err != nil || w.Channel != "C1" || w.Thread != "1.0" || len(c.Whispers("U2")) != 0 || len(c.Posted("C1")) != 0 {
			t.Errorf("%+v, %v", w, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.WaitModal(ctx, "U1"); err == nil {
			t.Error("a modal out of nothing")
		}
	})
}

// A button press that is not acknowledged is redelivered, and an answer to one that takes
// none counts as a mistake.
func TestPressIsRedelivered(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		c.Say("", "C1", "U1", "hello")
		posted := c.bot(t, "chat.postMessage", "channel", "C1", "blocks", list(actions(okButton)))
		ts, _ := posted["ts"].(string)
		conn, _ := c.connect(t)
		ack(t, conn, frameOf(t, conn)) // of hello
		id, err := c.Click("T9/U1", "C1", ts, "a1")
		if err != nil {
			t.Fatal(err)
		}
		first, second := frameOf(t, conn), frameOf(t, conn)
		p, _ := second["payload"].(map[string]any)
		if first["envelope_id"] != id || second["envelope_id"] != id || second["retry_attempt"] != 1.0 || fmt.Sprint(p["user"]) != "map[id:U1 name:u1 team_id:T9 username:u1]" {
			t.Errorf("%v, then %v", first, second)
		}
		if err := conn.WriteJSON(map[string]any{"envelope_id": id, "payload": map[string]any{"text": "x"}}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if a := c.Acks(); len(a) != 2 || a[1].Payload != `{"text":"x"}` || c.Traffic().Stray != 1 {
			t.Errorf("%+v, %+v", a, c.Traffic())
		}
		closeSocket(t, conn)
	})
}
