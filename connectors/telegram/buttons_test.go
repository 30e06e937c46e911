package telegram

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/texts"
)

// questionID has the length of real ones.
const questionID = "q2345678901234567890abcd"

// The group of the tests, with a person that is asked there.
const (
	testGroup = -1000000000001
	asked     = 7
)

// asks is the message that asks q in a chat.
func asks(q claybot.Question, chat int64) claybot.Outgoing {
	if q.ID == "" {
		q.ID = questionID
	}
	if q.Text == "" {
		q.Text = "Well?"
	}
	o := outgoing(fmt.Sprint(chat), "**"+q.Text+"**")
	o.Route.UserID, o.Route.Group = fmt.Sprint(asked), chat < 0
	o.Question = &q
	return o
}

// ask sends a question and returns its message.
func (b *bubble) ask(q claybot.Question, chat int64) telegramtest.Message {
	b.t.Helper()
	return b.send(asks(q, chat))
}

func (b *bubble) send(o claybot.Outgoing) telegramtest.Message {
	b.t.Helper()
	receipt, err := b.conn.Send(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	var id int64
	if _, err := fmt.Sscan(receipt, &id); err != nil {
		b.t.Fatal(err)
	}
	var chat int64
	_, _ = fmt.Sscan(o.Route.ChannelID, &chat)
	return b.shown(chat, id)
}

// shown is a message as it stands now.
func (b *bubble) shown(chat, id int64) telegramtest.Message {
	b.t.Helper()
	for _, m := range b.server.Sent(chat) {
		if m.ID == id {
			return m
		}
	}
	b.t.Fatalf("chat %d shows no message %d", chat, id)
	return telegramtest.Message{}
}

// press lets a user press a button, and returns what the user sees of it.
func (b *bubble) press(chat, user, message int64, text string) telegramtest.Press {
	b.t.Helper()
	query, ok := b.server.Press(chat, user, message, text)
	if !ok {
		b.t.Fatalf("message %d has no button %q but %q", message, text, b.shown(chat, message).Buttons())
	}
	synctest.Wait()
	t, _ := b.server.PressByID(query)
	return t
}

func number(x float64) *float64 { return &x }

func rowsOf(m telegramtest.Message) (rows [][]string) {
	for _, row := range m.Keyboard {
		var texts []string
		for _, x := range row {
			texts = append(texts, x.Text)
		}
		rows = append(rows, texts)
	}
	return rows
}

// Each type of question has its buttons, and a press of one is an answer that
// the question takes.
func TestQuestions(t *testing.T) {
	long := strings.Repeat("long option ", 8)
	long = long[:95]
	type test struct {
		name    string
		q       claybot.Question
		rows    [][]string
		presses []string
		want    string // the answer as it is stored
		scope   claybot.ApprovalScope
	}
	tests := []test{
		{name: "approve", q: claybot.Question{Type: claybot.QuestionConfirm, Required: true}, rows: [][]string{{"Approve", "Deny"}}, presses: []string{"Approve"}, want: "true"},
		{name: "deny", q: claybot.Question{Type: claybot.QuestionConfirm}, rows: [][]string{{"Approve", "Deny"}}, presses: []string{"Deny"}, want: "false"},
		{
			name: "approve a tool for the session", q: claybot.Question{Type: claybot.QuestionConfirm, Tool: "shell", Required: true},
			rows: [][]string{{"Approve", "Deny"}, {"Approve for this session"}}, presses: []string{"Approve for this session"}, want: "true", scope: claybot.ApproveSession,
		},
		{
			name: "approve one action of a tool", q: claybot.Question{Type: claybot.QuestionConfirm, Tool: "shell", Required: true, Once: true},
			rows: [][]string{{"Approve", "Deny"}}, presses: []string{"Approve"}, want: "true",
		},
		{name: "yes", q: claybot.Question{Type: claybot.QuestionBoolean, Required: true}, rows: [][]string{{"Yes", "No"}}, presses: []string{"Yes"}, want: "true"},
		{name: "no", q: claybot.Question{Type: claybot.QuestionBoolean, Required: true}, rows: [][]string{{"Yes", "No"}}, presses: []string{"No"}, want: "false"},
		{name: "skipped", q: claybot.Question{Type: claybot.QuestionBoolean}, rows: [][]string{{"Yes", "No"}, {"Skip"}}, presses: []string{"Skip"}, want: "null"},
		{
			name: "select", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"tea", "coffee", "milk", "water"}},
			rows: [][]string{{"tea", "coffee", "milk"}, {"water"}}, presses: []string{"milk"}, want: `"milk"`,
		},
		{
			name: "select in two columns", q: claybot.Question{Type: claybot.QuestionSelect, Options: []string{"green tea, hot", "coffee", "milk"}},
			rows: [][]string{{"green tea, hot", "coffee"}, {"milk"}, {"Skip"}}, presses: []string{"green tea, hot"}, want: `"green tea, hot"`,
		},
		{
			name: "select with a long option", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"a", long}},
			rows: [][]string{{"a"}, {connectors.OneLine(long, 60)}}, presses: []string{connectors.OneLine(long, 60)}, want: fmt.Sprintf("%q", long),
		},
		{
			name: "select of numbers", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"3", "2", "1"}},
			rows: [][]string{{"3", "2", "1"}}, presses: []string{"3"}, want: `"3"`,
		},
		{
			name: "select of a number and a long option", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"2", long}},
			rows: [][]string{{"2"}, {long}}, presses: []string{long}, want: fmt.Sprintf("%q", long),
		},
		{
			name: "invisible option", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"a", "\u200e"}},
			rows: [][]string{{"a", "2"}}, presses: []string{"2"}, want: "\"\u200e\"",
		},
		{name: "option that cannot be shown beside numbers", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"1", "a\u200e"}}},
		{
			name: "multiselect", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: []string{"tea", "coffee", "milk"}},
			rows: [][]string{{"tea", "coffee", "milk"}, {"Done"}}, presses: []string{"milk", "tea", "coffee", "✓ coffee", "Done"}, want: `["tea","milk"]`,
		},
		{
			name: "multiselect of numbers", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: []string{"3", "2", "✓ 1"}},
			rows: [][]string{{"3", "2", "✓ 1"}, {"Done"}}, presses: []string{"3", "✓ 1", "Done"}, want: `["3","✓ 1"]`,
		},
		{
			name: "none of several", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Min: number(0), Options: []string{"tea", "coffee"}},
			rows: [][]string{{"tea", "coffee"}, {"Done"}}, presses: []string{"Done"}, want: `[]`,
		},
		{
			name: "several skipped", q: claybot.Question{Type: claybot.QuestionMultiselect, Options: []string{"tea"}},
			rows: [][]string{{"tea"}, {"Done"}, {"Skip"}}, presses: []string{"tea", "Skip"}, want: `null`,
		},
		{name: "optional text", q: claybot.Question{Type: claybot.QuestionText, Placeholder: "a name"}, rows: [][]string{{"Skip"}}, presses: []string{"Skip"}, want: "null"},
	}
	for _, typ := range []claybot.QuestionType{
		claybot.QuestionText, claybot.QuestionTextarea, claybot.QuestionEmail, claybot.QuestionEmailList, claybot.QuestionDatetime,
		claybot.QuestionDate, claybot.QuestionTime, claybot.QuestionNumber,
	} {
		tests = append(tests, test{name: string(typ), q: claybot.Question{Type: typ, Required: true}})
	}
	for _, tt := range tests {
		for _, chat := range []int64{asked, testGroup} {
			t.Run(fmt.Sprint(tt.name, chat), func(t *testing.T) {
				inBubble(t, Config{}, func(t *testing.T, b *bubble) {
					b.server.Say(chat, asked, "hi")
					b.run()
					synctest.Wait()
					m := b.ask(tt.q, chat)
					if got := rowsOf(m); !reflect.DeepEqual(got, tt.rows) || m.ForceReply {
						t.Fatalf("buttons %q, want %q", got, tt.rows)
					}
					for _, text := range tt.presses {
						if got := b.press(chat, asked, m.ID, text); !got.Answered || got.Alert {
							t.Errorf("the press of %q: %+v", text, got)
						}
					}
					if len(tt.presses) == 0 {
						return
					}
					if len(b.sink.presses) != 1 {
						t.Fatalf("answers %+v", b.sink.presses)
					}
					got := b.sink.presses[0]
					want := connectors.Press{Connector: "telegram", UserID: fmt.Sprint(asked), ChannelID: fmt.Sprint(chat), Answer: claybot.Answer{Question: questionID, Text: got.Answer.Text, Scope: tt.scope}}
					if !reflect.DeepEqual(got, want) {
						t.Errorf("answer %+v, want %+v", got, want)
					}
					if v, err := tt.q.Check(got.Answer.Text, nil); err != nil || string(v) != tt.want {
						t.Errorf("the value %q is stored as %s, %v; want %s", got.Answer.Text, v, err, tt.want)
					}
				})
			})
		}
	}
}

// Where an answer is written, a hint says what it looks like; only where no other
// person reads, and where nothing else stands below the message.
func TestHints(t *testing.T) {
	wide := strings.Repeat("😀", 70)
	tests := []struct {
		name string
		q    claybot.Question
		chat int64
		edit bool
		want string
	}{
		{"placeholder", claybot.Question{Placeholder: "name@\nexample.org", Example: "x"}, asked, false, "name@ example.org"},
		{"example", claybot.Question{Example: "ann@example.org"}, asked, false, "ann@example.org"},
		{"long", claybot.Question{Example: strings.Repeat("x", 100)}, asked, false, strings.Repeat("x", 63) + "…"},
		{"wide", claybot.Question{Example: wide}, asked, false, strings.Repeat("😀", 31) + "…"},
		{"nothing to see", claybot.Question{Placeholder: " \u200e", Example: "x"}, asked, false, "x"},
		{"none", claybot.Question{}, asked, false, ""},
		{"group", claybot.Question{Example: "ann@example.org"}, testGroup, false, ""},
		{"edit", claybot.Question{Example: "ann@example.org"}, asked, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Say(tt.chat, asked, "hi")
				tt.q.Type, tt.q.Required = claybot.QuestionEmail, true
				o := asks(tt.q, tt.chat)
				if tt.edit {
					o.Edit = fmt.Sprint(b.send(outgoing(o.Route.ChannelID, "before")).ID)
				}
				m := b.send(o)
				if m.ForceReply != (tt.want != "") || m.Placeholder != tt.want || len(m.Keyboard) > 0 {
					t.Errorf("got %+v, want the hint %q", m, tt.want)
				}
			})
		})
	}
}

// A message with a hint cannot be edited: what was answered is told in a new
// one.
func TestHintsEndEdits(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		m := b.ask(claybot.Question{Type: claybot.QuestionText, Required: true, Example: "x"}, asked)
		o := outgoing("7", "answered")
		o.Edit = fmt.Sprint(m.ID)
		if _, err := b.conn.Send(t.Context(), o); !errors.Is(err, connectors.ErrEditGone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestEditsTakeButtonsAway(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		q := claybot.Question{Type: claybot.QuestionBoolean, Required: true}
		m := b.ask(q, asked)
		o := asks(q, asked)
		o.Edit, o.Text = fmt.Sprint(m.ID), "once more"
		if got := b.send(o); got.Text != "once more" || len(got.Buttons()) != 2 {
			t.Errorf("an edit with the question: %q %q", got.Text, got.Buttons())
		}
		o.Question = nil
		for range 2 { // twice is no harm
			if got := b.send(o); len(got.Keyboard) != 0 {
				t.Errorf("an edit without the question: %q", got.Buttons())
			}
		}
		for _, e := range b.server.Journal("editMessageText")[1:] {
			if !strings.Contains(e.Params, `"reply_markup":{"inline_keyboard":[]}`) {
				t.Errorf("sent %s", e.Params)
			}
		}
	})
}

func TestOffersOnMessages(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		o := asks(claybot.Question{Type: claybot.QuestionBoolean, Required: true}, asked)
		o.Offer = []claybot.Offer{
			{Label: "Undo", Command: "/undo ckr1234567890abcdefghijkl"},
			{Label: "Stop", Command: "/stop"},
			{Label: "Longest", Command: "/" + strings.Repeat("x", 61)},
			{Label: "Too long", Command: "/" + strings.Repeat("x", 62)},
			{Label: "No command", Command: "stop"},
			{Label: "Two lines", Command: "/new\nline"},
			{Label: " \u200e", Command: "/stop"},
			{Label: "Broken", Command: "/\xff"},
		}
		m := b.send(o)
		if got := rowsOf(m); !reflect.DeepEqual(got, [][]string{{"Yes", "No"}, {"Undo", "Stop", "Longest"}}) {
			t.Errorf("buttons %q", got)
		}
		if n := strings.Count(b.logs.String(), "was left out"); n != 5 {
			t.Errorf("%d were reported: %s", n, b.logs)
		}
		o.Question, o.Offer = nil, nil
		for i := range 10 {
			o.Offer = append(o.Offer, claybot.Offer{Label: fmt.Sprint(i), Command: "/stop"})
		}
		if got := b.send(o); len(got.Keyboard) != 1 || len(got.Buttons()) != 8 {
			t.Errorf("buttons %q", rowsOf(got))
		}
	})
}

// A question must reach its person, whatever Telegram thinks of its buttons.
func TestRefusedButtons(t *testing.T) {
	for _, refusal := range []string{
		"Bad Request: BUTTON_DATA_INVALID",
		"Bad Request: reply markup is too long",
		"Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
	} {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(asked, asked, "hi")
			b.server.Fail(telegramtest.Fault{Method: "sendMessage", Status: 400, Description: refusal})
			b.server.Fail(telegramtest.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: can't parse entities: x"})
			m := b.ask(claybot.Question{Type: claybot.QuestionBoolean, Required: true}, asked)
			if m.Text != "**Well?**" || len(m.Keyboard) != 0 || b.server.Calls("sendMessage") != 3 {
				t.Errorf("%s: %d calls, %+v", refusal, b.server.Calls("sendMessage"), m)
			}
			b.server.Fail(telegramtest.Fault{Method: "sendMessage", Status: 400, Description: refusal, Times: -1})
			var stop *connectors.PermanentError
			if _, err := b.conn.Send(t.Context(), asks(claybot.Question{Type: claybot.QuestionBoolean}, asked)); !errors.As(err, &stop) {
				t.Errorf("refused for ever: %v", err)
			}
			if n := b.server.Calls("sendMessage"); n != 5 {
				t.Errorf("%d calls, want two more", n-3)
			}
		})
	}
}

// Whatever question is valid, its buttons fit: data of at most 64 bytes, each
// once and read as it was written, and texts that can be seen.
func TestButtonsFit(t *testing.T) {
	var many []string
	for i := range maxOptions {
		many = append(many, fmt.Sprintf("%d.%s", i+1, strings.Repeat("日", i)))
	}
	var numbers []string
	for i := range maxOptions {
		numbers = append(numbers, fmt.Sprint(maxOptions-i))
	}
	for _, options := range [][]string{many, numbers, {"one"}, {"1"}} {
		for _, typ := range []claybot.QuestionType{claybot.QuestionSelect, claybot.QuestionMultiselect} {
			for _, user := range []int64{0, 1, 9_999_999_999, 1<<52 - 1} {
				q := claybot.Question{ID: questionID, Text: "?", Type: typ, Options: options}
				if err := q.Valid(); err != nil {
					t.Fatal(err)
				}
				rows, ok := ask(texts.Voice{}, q, user)
				if !ok {
					t.Fatalf("%s of %d: no buttons", typ, len(options))
				}
				k := keyboard{Rows: rows}.show(q.ID, 1<<len(options)-1)
				seen := make(map[string]bool)
				for _, row := range k.Rows {
					for _, b := range row {
						p, ok := readPress(b.Data)
						if len(b.Data) > maxDataBytes || seen[b.Data] || b.Text == "" || !utf8.ValidString(b.Text) || !ok {
							t.Errorf("button %+v", b)
						}
						if p.verb == verbToggle && p.user != user {
							t.Errorf("button %+v is for %d", b, p.user)
						}
						seen[b.Data] = true
					}
					if len(row) > 3 {
						t.Errorf("row %+v", row)
					}
				}
			}
		}
	}
}

// Ids are not ours to choose. The longer they are, the less fits.
func TestLongQuestionIDs(t *testing.T) {
	tests := []struct {
		id      string
		typ     claybot.QuestionType
		buttons int
		user    int64
	}{
		{strings.Repeat("x", 30), claybot.QuestionMultiselect, 3, 1<<52 - 1},
		{strings.Repeat("x", 40), claybot.QuestionMultiselect, 3, 0}, // who is done is judged
		{strings.Repeat("x", 48), claybot.QuestionMultiselect, 0, 0},
		{strings.Repeat("x", 48), claybot.QuestionSelect, 2, 0},
		{strings.Repeat("x", 49), claybot.QuestionSelect, 0, 0},
		{"a:b", claybot.QuestionSelect, 0, 0},
		{"é", claybot.QuestionBoolean, 0, 0},
	}
	for _, tt := range tests {
		q := claybot.Question{ID: tt.id, Type: tt.typ, Required: true}
		if tt.typ != claybot.QuestionBoolean {
			q.Options = []string{"a", "b"}
		}
		rows, ok := ask(texts.Voice{}, q, 1<<52-1)
		n, user := 0, int64(0)
		for _, b := range slices.Concat(rows...) {
			p, _ := readPress(b.Data)
			user = max(user, p.user)
			n++
		}
		if ok != (tt.buttons > 0) || ok && n != tt.buttons || ok && user != tt.user {
			t.Errorf("%s %s: %d buttons for %d, %v", tt.id, tt.typ, n, user, ok)
		}
	}
}

func TestPress(t *testing.T) {
	good := []press{
		{question: questionID, verb: verbYes},
		{question: "a", verb: verbSession},
		{question: "a", verb: verbNo},
		{question: "a", verb: verbSkip},
		{question: "a", verb: verbOption, option: 1},
		{question: "a", verb: verbOption, option: 50, named: true},
		{question: "a", verb: verbToggle, option: 1},
		{question: "a", verb: verbToggle, option: 50, chosen: 1<<50 - 1, user: 1<<63 - 1, named: true},
		{question: "a", verb: verbDone},
		{question: "a", verb: verbDone, chosen: 1 << 49, named: true},
	}
	for _, p := range good {
		s, ok := p.data()
		if got, read := readPress(s); !ok || !read || got != p {
			t.Errorf("%+v is %q and read as %+v", p, s, got)
		}
	}
	for _, s := range []string{
		"", "q", "q:", "q::", "q::y", "q:a", "q:a:", "x:a:y", "q:a:z", "q:a:Y", "q:a:yy", "q:a:y1", "q:a b:y", "Q:a:y", "q:a:y\x00", "q:é:y",
		"q:a:o", "q:a:o0", "q:a:o01", "q:a:o51", "q:a:o-1", "q:a:o1.1", "q:a:o99999999999999999999",
		"q:a:t1", "q:a:t1.", "q:a:t0.1", "q:a:t1.g", "q:a:t1.01", "q:a:t1.1.", "q:a:t1.1.0", "q:a:t1.1.-1", "q:a:t1.1.1.1", "q:a:t1.4000000000000", "q:a:t1.ffffffffffffffffff", "q:a:t1.F",
		"q:a:d", "q:a:d00", "q:a:d4000000000000", "q:" + strings.Repeat("a", 49) + ":y",
	} {
		if p, ok := readPress(s); ok {
			t.Errorf("%q is read as %+v", s, p)
		}
	}
}

// FuzzPress: whatever is sent as the data of a button, it is refused or is
// exactly what we would have written.
func FuzzPress(f *testing.F) {
	for _, s := range []string{"q:a:y", "q:a:S", "q:a:o7", "q:a:t1.f.zik0zj", "q:a:D3ffffffffffff", "c:/undo x", "q:a:t1.1.1.1", ""} {
		f.Add(s)
	}
	k := keyboard{Rows: [][]button{{{Text: "x", Data: "q:a:T1.0"}, {Text: "✓ y", Data: "q:a:T2.2"}}}}
	f.Fuzz(func(t *testing.T, s string) {
		if command, ok := readOffer(s); ok && (!strings.HasPrefix(command, "/") || len(s) > maxDataBytes) {
			t.Fatalf("%q is the command %q", s, command)
		}
		p, ok := readPress(s)
		if !ok {
			return
		}
		if again, fits := p.data(); !fits || again != s {
			t.Fatalf("%q is read as %+v, which is %q", s, p, again)
		}
		if p.verb == verbToggle {
			k.show(p.question, p.chosen^p.bit())
		} else if v, ok := p.value(k); ok && !utf8.ValidString(v) {
			t.Fatalf("%q: the value is %q", s, v)
		}
	})
}
