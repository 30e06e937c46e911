package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const twoButtons = `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"},{"text":"No","callback_data":"n"}],[{"text":"Site","url":"https://x.test/"}]]}`

// asking is a server on which message 2 of chat 7 has buttons.
func asking(t *testing.T, cfg Config) *Server {
	t.Helper()
	s := New(cfg)
	s.Say(7, 7, "hi")
	if status, a := post(t, s, "sendMessage", `{"chat_id":7,"text":"Well?","reply_markup":`+twoButtons+`}`); status != 200 {
		t.Fatalf("got %d %v", status, a)
	}
	return s
}

// taken are the callback queries that a poll brings.
func taken(t *testing.T, s *Server, params string) (out []map[string]any) {
	t.Helper()
	_, a := post(t, s, "getUpdates", params)
	list, _ := a["result"].([]any)
	for _, u := range list {
		if q, ok := u.(map[string]any)["callback_query"].(map[string]any); ok {
			out = append(out, q)
		}
	}
	return out
}

func TestPress(t *testing.T) {
	s := asking(t, Config{})
	defer s.Close()
	s.AddPerson(7, "Ann", "ann")
	query, ok := s.Press(7, 7, 2, "No")
	if !ok {
		t.Fatal("no such button")
	}
	for range 2 { // returning confirms nothing
		got := taken(t, s, `{}`)
		if len(got) != 1 {
			t.Fatalf("got %v", got)
		}
		q := got[0]
		m := q["message"].(map[string]any)
		var want any
		_ = json.Unmarshal([]byte(twoButtons), &want)
		if q["id"] != query || q["data"] != "n" || q["from"].(map[string]any)["username"] != "ann" || m["message_id"] != 2.0 || m["text"] != "Well?" || !reflect.DeepEqual(m["reply_markup"], want) {
			t.Errorf("got %v", q)
		}
	}
	for _, miss := range []struct {
		chat, message int64
		text          string
	}{{7, 2, "Perhaps"}, {7, 2, "Site"}, {7, 1, "No"}, {7, 3, "No"}, {8, 2, "No"}} {
		if _, ok := s.Press(miss.chat, 7, miss.message, miss.text); ok {
			t.Errorf("%+v could be pressed", miss)
		}
	}
	s.DeleteSent(7, 2)
	if _, ok := s.Press(7, 7, 2, "No"); ok {
		t.Error("a button of a deleted message could be pressed")
	}
}

func TestAnswerPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asking(t, Config{})
		defer s.Close()
		answer := func(id, more string) string {
			_, a := post(t, s, "answerCallbackQuery", `{"callback_query_id":"`+id+`"`+more+`}`)
			says, _ := a["description"].(string)
			return says
		}
		first, _ := s.Press(7, 7, 2, "Yes")
		if says := answer(first, `,"text":"`+strings.Repeat("x", 201)+`"`); !strings.Contains(says, "MESSAGE_TOO_LONG") {
			t.Errorf("a long answer: %q", says)
		}
		if says := answer(first, `,"text":"Thanks","show_alert":true`); says != "" {
			t.Errorf("the answer: %q", says)
		}
		if got, err := s.WaitAnswer(t.Context(), first); err != nil || got.Text != "Thanks" || !got.Alert || got.UserID != 7 || got.Data != "y" {
			t.Errorf("got %+v, %v", got, err)
		}
		late, _ := s.Press(7, 7, 2, "Yes")
		time.Sleep(defaultPressAge + time.Second)
		for name, id := range map[string]string{"twice": first, "late": late, "unknown": "12", "empty": ""} {
			if says := answer(id, ""); !strings.HasPrefix(says, "Bad Request: query is too old") {
				t.Errorf("%s: %q", name, says)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.WaitAnswer(ctx, late); err == nil {
			t.Error("a press that was not answered is waited for")
		}
		if _, ok := s.PressByID("12"); ok {
			t.Error("an unknown press is known")
		}
	})
}

// Button presses are kept for much shorter than messages, in whatever order they came.
func TestPressesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asking(t, Config{PressAge: time.Hour})
		defer s.Close()
		s.Press(7, 7, 2, "Yes")
		s.Say(7, 7, "between")
		time.Sleep(100 * time.Second)
		query, _ := s.Press(7, 7, 2, "No")
		time.Sleep(100 * time.Second)
		if got := taken(t, s, `{}`); len(got) != 1 || got[0]["id"] != query {
			t.Errorf("got %v", got)
		}
		if _, a := post(t, s, "getUpdates", `{}`); len(ids(a)) != 3 { // hi, between and the second press
			t.Errorf("updates %v", ids(a))
		}
		if _, a := post(t, s, "answerCallbackQuery", `{"callback_query_id":`+query+`}`); a["ok"] != true { // a number will do
			t.Errorf("got %v", a)
		}
		time.Sleep(time.Minute)
		if got := taken(t, s, `{}`); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		if _, a := post(t, s, "getUpdates", `{"offset":`+fmt.Sprint(s.Say(7, 7, "last"))+`}`); len(ids(a)) != 1 {
			t.Errorf("updates %v", ids(a))
		}
	})
}

func TestOddPresses(t *testing.T) {
	s := asking(t, Config{})
	defer s.Close()
	s.Forget(7, 2)
	s.Press(7, 7, 2, "Yes")
	s.PressInline(7, "y")
	s.PressData(7, 8, 99, "forged")
	got := taken(t, s, `{}`)
	if len(got) != 3 {
		t.Fatalf("got %v", got)
	}
	for _, i := range []int{0, 2} {
		if m := got[i]["message"].(map[string]any); m["date"] != 0.0 || m["text"] != nil || m["reply_markup"] != nil || m["chat"] == nil {
			t.Errorf("inaccessible: %v", m)
		}
	}
	if got[1]["message"] != nil || got[1]["inline_message_id"] == nil {
		t.Errorf("inline: %v", got[1])
	}
	post(t, s, "getUpdates", `{"allowed_updates":["message"]}`)
	if press, _ := s.PressByID(s.PressData(7, 7, 2, "y")); press.Update != 0 {
		t.Error("an unexpected press came")
	}
}

func TestMarkup(t *testing.T) {
	button := func(s string) string { return `{"inline_keyboard":[[` + s + `]]}` }
	many := strings.TrimSuffix(strings.Repeat(`{"text":"x","callback_data":"x"},`, 9), ",")
	tests := []struct {
		name, markup, says string
	}{
		{"buttons", twoButtons, ""},
		{"a string", string(mustJSON(twoButtons)), ""},
		{"64 bytes", button(`{"text":"x","callback_data":"` + strings.Repeat("é", 32) + `"}`), ""},
		{"65 bytes", button(`{"text":"x","callback_data":"` + strings.Repeat("é", 32) + `x"}`), "BUTTON_DATA_INVALID"},
		{"no data", button(`{"text":"x"}`), "Text buttons are unallowed in the inline keyboard"},
		{"empty data", button(`{"text":"x","callback_data":""}`), "Text buttons are unallowed in the inline keyboard"},
		{"no text", button(`{"callback_data":"x"}`), `Can't find field "text"`},
		{"empty text", button(`{"text":"","callback_data":"x"}`), "must be non-empty"},
		{"text of a wrong type", button(`{"text":5,"callback_data":"x"}`), `Field "text" must be of type String`},
		{"data of a wrong type", button(`{"text":"x","callback_data":{}}`), `Field "callback_data" must be of type String`},
		{"no object", button(`"x"`), "must be an Object"},
		{"null", button(`null`), "must be an Object"},
		{"no rows", `{"inline_keyboard":[{"text":"x"}]}`, "must be an Array of Arrays"},
		{"row is null", `{"inline_keyboard":[null]}`, "must be an Array of Arrays"},
		{"no array", `{"inline_keyboard":5}`, "must be of type Array"},
		{"nine in a row", button(many), "reply markup is too long"},
		{"no markup", `[]`, "object expected as reply markup"},
		{"broken", `"{"`, "can't parse reply keyboard markup"},
		{"another keyboard", `{"keyboard":[["x"]]}`, "inline ones"},
		{"hint", `{"force_reply":true,"input_field_placeholder":"name"}`, ""},
		{"long hint", `{"force_reply":true,"input_field_placeholder":"` + strings.Repeat("x", 65) + `"}`, "placeholder is too long"},
		{"nothing", `null`, ""},
		{"empty", `{"inline_keyboard":[]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Config{})
			defer s.Close()
			s.Say(7, 7, "hi")
			status, a := post(t, s, "sendMessage", `{"chat_id":7,"text":"Well?","reply_markup":`+tt.markup+`}`)
			if says, _ := a["description"].(string); !strings.Contains(says, tt.says) || (status == 200) != (tt.says == "") {
				t.Errorf("got %d %v, want %q", status, a, tt.says)
			}
		})
	}
}

func TestEditsOfMarkup(t *testing.T) {
	var shown []Message
	s := asking(t, Config{OnMessage: func(m Message) { shown = append(shown, m) }})
	defer s.Close()
	post(t, s, "sendMessage", `{"chat_id":7,"text":"Name?","reply_markup":{"force_reply":true,"input_field_placeholder":"Ann"}}`)
	one := `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`
	steps := []struct {
		method, params, says string
		buttons              []string
	}{
		{"editMessageReplyMarkup", `"message_id":2,"reply_markup":` + twoButtons, "not modified", []string{"Yes", "No", "Site"}},
		{"editMessageReplyMarkup", `"message_id":2,"reply_markup":` + one, "", []string{"Yes"}},
		{"editMessageReplyMarkup", `"message_id":2,"reply_markup":{"force_reply":true}`, "inline keyboard expected", []string{"Yes"}},
		{"editMessageReplyMarkup", `"message_id":1,"reply_markup":` + one, "can't be edited", []string{"Yes"}},
		{"editMessageReplyMarkup", `"message_id":9,"reply_markup":` + one, "to edit not found", []string{"Yes"}},
		{"editMessageReplyMarkup", `"message_id":3`, "can't be edited", []string{"Yes"}},
		{"editMessageText", `"message_id":3,"text":"x"`, "can't be edited", []string{"Yes"}},
		{"editMessageText", `"message_id":2,"text":"Well?","reply_markup":` + one, "not modified", []string{"Yes"}},
		{"editMessageText", `"message_id":2,"text":"x","reply_markup":{"force_reply":true}`, "inline keyboard expected", []string{"Yes"}},
		{"editMessageText", `"message_id":2,"text":"Well?"`, "", nil}, // without a markup the buttons go
		{"editMessageReplyMarkup", `"message_id":2`, "not modified", nil},
	}
	for i, step := range steps {
		_, a := post(t, s, step.method, `{"chat_id":7,`+step.params+`}`)
		if says, _ := a["description"].(string); !strings.Contains(says, step.says) || (a["ok"] == true) != (step.says == "") {
			t.Errorf("step %d: got %v, want %q", i, a, step.says)
		}
		if got := s.Sent(7)[0].Buttons(); !slices.Equal(got, step.buttons) {
			t.Errorf("step %d: buttons %q", i, got)
		}
	}
	if m := s.Sent(7)[1]; !m.ForceReply || m.Placeholder != "Ann" {
		t.Errorf("the hint: %+v", m)
	}
	if len(shown) != 4 || !slices.Equal(shown[2].Buttons(), []string{"Yes"}) {
		t.Errorf("told of %+v", shown)
	}
}

func TestMarkupInForms(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	base, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	call := func(method string, values url.Values) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/bot"+Token+"/"+method, strings.NewReader(values.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%s: status %d", method, resp.StatusCode)
		}
	}
	call("sendMessage", url.Values{"chat_id": {"7"}, "text": {"Well?"}, "reply_markup": {twoButtons}})
	query, ok := s.Press(7, 7, 2, "Yes")
	if !ok {
		t.Fatalf("got %+v", s.Sent(7))
	}
	call("answerCallbackQuery", url.Values{"callback_query_id": {query}, "text": {"12"}, "show_alert": {"true"}})
	if got, err := s.WaitAnswer(t.Context(), query); err != nil || got.Text != "12" || !got.Alert {
		t.Errorf("got %+v, %v", got, err)
	}
}
