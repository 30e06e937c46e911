package chat

import (
	"context"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// A place has messages. The real one is tested in agentsystem.
type place struct {
	said []claybot.Said
	more bool
	read []tools.ChatPage
}

func (p *place) Said(_ context.Context, _ tools.Env, page tools.ChatPage) ([]claybot.Said, bool, error) {
	p.read = append(p.read, page)
	return p.said, p.more, nil
}

func TestReadChat(t *testing.T) {
	one := claybot.Said{ID: "1.5", UserID: "U1", Name: "Ann", Text: "a <b>\n\"c\"", At: 1000}
	bot, outsider, long := one, one, one
	bot.Bot, outsider.Outsider, long.Text = true, true, strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		args string
		said []claybot.Said
		more bool
		want string // a part of the result
		page tools.ChatPage
	}{
		"usual":      {`{}`, []claybot.Said{one}, false, `{"id":"1.5","time":"1970-01-01T00:00:01Z","sender":"U1","name":"Ann","text":"a <b>\n\"c\""}`, tools.ChatPage{Limit: 20}},
		"arguments":  {`{"before":" 2.5 ","channel":true,"limit":50}`, []claybot.Said{one}, true, "(there are older messages: before=1.5)\n{", tools.ChatPage{Channel: true, Before: "2.5", Limit: 50}},
		"a program":  {`{}`, []claybot.Said{bot}, false, `"by":"a program"`, tools.ChatPage{Limit: 20}},
		"outsider":   {`{}`, []claybot.Said{outsider}, false, `"by":"an outsider"`, tools.ChatPage{Limit: 20}},
		"long":       {`{}`, []claybot.Said{long}, false, `[… 3000 of 5000 bytes left out]`, tools.ChatPage{Limit: 20}},
		"nothing":    {`{}`, nil, false, "(nothing was said before)", tools.ChatPage{Limit: 20}},
		"far":        {`{}`, nil, true, "too far back", tools.ChatPage{Limit: 20}},
		"too many":   {`{"limit":51}`, nil, false, "field limit: 51, want 1 to 50", tools.ChatPage{}},
		"less":       {`{"limit":-1}`, nil, false, "field limit: -1, want 1 to 50", tools.ChatPage{}},
		"endless id": {`{"before":"` + strings.Repeat("1", 201) + `"}`, nil, false, "field before: 201 bytes, the limit is 200", tools.ChatPage{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{said: c.said, more: c.more}
			set, err := tools.NewSet(Tools(p)...)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := set.Call(t.Context(), tools.Env{Run: "run"}, claybot.ToolCall{ID: "c", Name: "read_chat", Args: c.args})
			if !strings.Contains(r.Text, c.want) || r.Tainted != (len(c.said) > 0) || !r.Private {
				t.Errorf("%q, tainted %v, private %v; want %q", r.Text, r.Tainted, r.Private, c.want)
			}
			var page tools.ChatPage
			if len(p.read) > 0 {
				page = p.read[0]
			}
			if page != c.page {
				t.Errorf("read %+v, want %+v", page, c.page)
			}
		})
	}
}
