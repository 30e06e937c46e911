package ask

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// A listener is the seam behind the tool: it keeps what it is asked.
type listener struct {
	env   tools.Env
	asked []claybot.Question
	err   error
}

func (l *listener) Ask(_ context.Context, env tools.Env, qs []claybot.Question) (tools.Result, error) {
	l.env, l.asked = env, qs
	return tools.Result{Text: "asked"}, l.err
}

// call makes a call as a model does: through a set, which checks the schema.
func call(t *testing.T, l *listener, args string) claybot.Record {
	t.Helper()
	set, err := tools.NewSet(Tools(l)...)
	if err != nil {
		t.Fatal(err)
	}
	r, wait := set.Call(t.Context(), tools.Env{Run: "run", CallID: "c"}, claybot.ToolCall{ID: "c", Name: Name, Args: args})
	if wait != nil {
		t.Fatal("waits")
	}
	return r
}

func bound(x float64) *float64 { return &x }

func TestAsk(t *testing.T) {
	long := strings.Repeat("x", 2001)
	tests := []struct {
		args string
		want []claybot.Question // nil for an error
		err  string             // a part of it
	}{
		{`{"question":" What? "}`, []claybot.Question{{Key: "answer", Text: "What?", Type: "text", Required: true}}, ""},
		{`{"question":"Which?","options":["a "," b"],"default":"a"}`, []claybot.Question{{
			Key: "answer", Text: "Which?", Type: "select", Options: []string{"a", "b"}, Default: "a", Required: true,
		}}, ""},
		{`{"question":"How many?","type":"number","key":"n","min":1,"max":2.5,"example":"2","placeholder":"a few"}`, []claybot.Question{{
			Key: "n", Text: "How many?", Type: "number", Min: bound(1), Max: bound(2.5), Example: "2", Placeholder: "a few", Required: true,
		}}, ""},
		{`{"question":"What?","format":"[a-z]+","expiresIn":"1d 12h"}`, []claybot.Question{{
			Key: "answer", Text: "What?", Type: "text", Format: "[a-z]+", Required: true, Expires: claybot.At(time.Date(2000, 1, 2, 12, 0, 0, 0, time.UTC)),
		}}, ""},
		{`{"questions":[{"question":"A?"},{"question":"B?","type":"boolean","key":"b"}]}`, []claybot.Question{
			{Key: "q1", Text: "A?", Type: "text", Required: true}, {Key: "b", Text: "B?", Type: "boolean", Required: true},
		}, ""},
		{`{"question":"A?","questions":[]}`, []claybot.Question{{Key: "answer", Text: "A?", Type: "text", Required: true}}, ""},
		{`{}`, nil, "field question: must not be empty"},
		{`{"question":" "}`, nil, "field question: must not be empty"},
		{`{"question":"` + long + `"}`, nil, "more than 2000"},
		{`{"question":"A?","questions":[{"question":"B?"}]}`, nil, "not both"},
		{`{"questions":[{"question":"A?"},{"question":"B?","type":"select"}]}`, nil, "question 2: field options"},
		{`{"questions":[{"question":"A?","key":"k"},{"question":"B?","key":"K"}]}`, nil, `question 2: field key: "K" is there twice`},
		{`{"questions":[{"question":"A?","key":"q2"},{"question":"B?"}]}`, nil, `"q2" is there twice`},
		{`{"questions":[{"question":"1"},{"question":"2"},{"question":"3"},{"question":"4"},{"question":"5"},{"question":"6"}]}`, nil, "at most 5"},
		{`{"question":"A?","type":"confirm"}`, nil, "approvals"},
		{`{"question":"A?","type":"colour"}`, nil, "field type"},
		{`{"question":"A?","min":3,"max":2}`, nil, "more than max"},
		{`{"question":"A?","format":"("}`, nil, "field format"},
		{`{"question":"A?","type":"date","default":"soon"}`, nil, "field default"},
		{`{"question":"A?","expiresIn":"30"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"59s"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"8d"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"7d1s"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"-1h"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"99999999999999999999d"}`, nil, "field expiresIn"},
		{`{"question":"A?","expiresIn":"213503983d"}`, nil, "field expiresIn"}, // more than fits
		{`{"question":7}`, nil, "field question"},
		{`{"question":"A?","options":["a",7]}`, nil, "field options[]"},
		{`{"question":"A?","colour":"red"}`, nil, "colour"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) { // time stands still
			l := new(listener)
			r := call(t, l, tt.args)
			switch {
			case tt.want == nil && (r.OK || !strings.Contains(r.Text, tt.err) || l.asked != nil):
				t.Errorf("%s: %v %q, asks %+v; want %q", tt.args, r.OK, r.Text, l.asked, tt.err)
			case tt.want != nil && (!r.OK || !reflect.DeepEqual(l.asked, tt.want)):
				got, _ := json.Marshal(l.asked) // questions always marshal
				t.Errorf("%s: %q, asks %s", tt.args, r.Text, got)
			}
		})
	}
}

func TestAskPassesOn(t *testing.T) {
	l := &listener{err: errors.New("the person is away")}
	if r := call(t, l, `{"question":"A?"}`); r.OK || r.Text != "error: the person is away" || l.env.Run != "run" || l.env.CallID != "c" {
		t.Errorf("got %+v, called with %+v", r, l.env)
	}
	set, err := tools.NewSet(Tools(l)...)
	if err != nil || set.Effect(Name) != tools.Idempotent {
		t.Errorf("%v, %s", err, set.Effect(Name))
	}
}

func FuzzAsk(f *testing.F) {
	f.Add(`{"question":"A?","options":["a"],"expiresIn":"1d"}`)
	f.Add(`{"questions":[{"question":"A?","min":1}]}`)
	f.Fuzz(func(t *testing.T, args string) {
		l := new(listener)
		call(t, l, args)
		for _, q := range l.asked {
			if err := q.Valid(); err != nil || q.Key == "" || len(l.asked) > maxQuestions {
				t.Fatalf("%s: asks %+v, %v", args, q, err)
			}
		}
	})
}
