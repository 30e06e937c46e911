package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/claybot/claybot/client"
)

// A shaky daemon answers each path with its next answer, the last one again and
// again; "-" is none at all. The answers of a stream that begin with "open" stay open.
type shaky map[string][]string

func (s shaky) RoundTrip(r *http.Request) (*http.Response, error) {
	all := s[r.URL.Path]
	if len(all) == 0 || all[0] == "-" {
		return nil, errors.New("connection refused")
	}
	if len(all) > 1 {
		s[r.URL.Path] = all[1:]
	}
	status, body := http.StatusOK, all[0]
	if rest, refused := strings.CutPrefix(body, "503 "); refused {
		status, body = http.StatusServiceUnavailable, rest
	}
	if rest, none := strings.CutPrefix(body, "404 "); none {
		status, body = http.StatusNotFound, rest
	}
	var content io.ReadCloser = io.NopCloser(strings.NewReader(body))
	if rest, open := strings.CutPrefix(body, "open"); open {
		content = held{strings.NewReader(rest), r.Context()}
	}
	return &http.Response{StatusCode: status, Body: content, Header: make(http.Header), Request: r}, nil
}

// held is a body that has no end before its request has.
type held struct {
	io.Reader
	ctx context.Context
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err == io.EOF {
		<-h.ctx.Done()
		return 0, h.ctx.Err()
	}
	return n, err
}

func (held) Close() error { return nil }

// frames are events as the stream of a chat has them.
func frames(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		kind, data, _ := strings.Cut(line, " ")
		if kind == "message" {
			b.WriteString("id: " + string(rune('1'+i)) + "\n")
		}
		b.WriteString("event: " + kind + "\ndata: " + data + "\n\n")
	}
	return b.String()
}

// A stream that breaks while the daemon lives is opened again, and the end of the run
// that was missed meanwhile is learned from the receipt. Only a daemon that does not
// answer is gone.
func TestChatOutlivesItsStream(t *testing.T) {
	const (
		started  = `event {"type":"RunStarted","runId":"r1","seq":1,"data":{"messages":["m"]}}`
		finished = `event {"type":"RunFinished","runId":"r1","seq":2,"data":{"output":"done"}}`
		answer   = `message {"kind":"answer","run":"r1","text":"done"}`
		partial  = `message {"kind":"answer","run":"r1","text":"do *(stopped)*"}`
		halfway  = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"CANCELED","output":"do *(stopped)*"},"replies":[{"id":"o1"}]}]}`
		stopped  = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"CANCELED"},"replies":[]}]}`
		sorry    = `message {"kind":"notice","run":"r1","text":"sorry"}`
		question = `message {"id":"question/q1/1","kind":"notice","run":"r1","text":"Which?"}`
		away     = `away {}`
		works    = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"RUNNING"}}]}`
		ended    = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"SUCCEEDED","output":"done"}}]}`
		quiet    = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"SUCCEEDED"}}]}`
		broke    = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"FAILED"}}]}`
		asks     = `{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"AWAITING_INPUT","awaiting":{"questions":[{"id":"q1"}]}}}]}`
		waits    = `{"receipts":[{"messageId":"m"}]}`
		down     = `503 {"error":{"message":"It does not answer right now."}}`
		starts   = `503 {"error":{"code":"not_ready","message":"The chat is starting or stopping."}}`
		notice   = "claybot: the database does not respond; your messages are stored, and this waits until it does\n"
	)
	gone := []string{"ok", "ok", "-"}
	for name, tt := range map[string]struct {
		streams, receipts, lives []string
		json                     bool
		out, errs                string
		err                      error
	}{
		"it goes on":              {[]string{frames(started), "open" + frames(finished, answer)}, []string{works}, nil, false, "done\n", "", nil},
		"the end was missed":      {[]string{frames(started), "open" + frames(answer)}, []string{ended}, nil, false, "done\n", "", nil},
		"all was missed":          {[]string{"", "open" + frames(answer)}, []string{ended}, nil, false, "done\n", "", nil},
		"nothing to say":          {[]string{frames(started), "open"}, []string{quiet}, nil, false, "", "", nil},
		"a failure was missed":    {[]string{frames(started), "open" + frames(sorry)}, []string{broke}, nil, false, "", "sorry\n", errSilent},
		"a stop was missed":       {[]string{frames(started), "open" + frames(partial)}, []string{halfway}, nil, false, "do *(stopped)*\n", "", errSilent},
		"stopped before a word":   {[]string{frames(started), "open"}, []string{stopped}, nil, false, "", "claybot: the run was stopped before it wrote a reply\n", errSilent},
		"a question was missed":   {[]string{frames(started), "open" + frames(question)}, []string{asks}, nil, false, "Which?\n", "", nil},
		"it waits still":          {[]string{"", "open" + frames(started, finished, answer)}, []string{waits}, nil, false, "done\n", "", nil},
		"nothing is known of it":  {[]string{"", "open" + frames(started, finished, answer)}, []string{"404 {}"}, nil, false, "done\n", "", nil},
		"it breaks often":         {[]string{frames(started), "", "", "", "open" + frames(answer)}, []string{works, works, works, ended}, nil, false, "done\n", "", nil},
		"the database is away":    {[]string{frames(started, away, away), down, down, "open" + frames(answer)}, []string{ended}, nil, false, "done\n", notice, nil},
		"the daemon starts anew":  {[]string{frames(started), starts, "open" + frames(answer)}, []string{ended}, nil, false, "done\n", "", nil},
		"away as it asks":         {[]string{frames(started), "open", "open" + frames(answer)}, []string{down, ended}, nil, false, "done\n", notice, nil},
		"the receipt is damaged":  {[]string{frames(started), "open", "open" + frames(answer)}, []string{"[", ended}, nil, false, "done\n", "", nil},
		"events come once":        {[]string{frames(started), "open" + frames(started, finished, answer)}, []string{works}, nil, true, started[6:] + "\n" + finished[6:] + "\n", "", nil},
		"the daemon ends":         {[]string{frames(started)}, []string{works}, []string{"-"}, false, "", "", errGone},
		"the daemon ends later":   {[]string{frames(started), down, down, down}, []string{works}, gone, false, "", notice, errGone},
		"the daemon says nothing": {[]string{frames(started), "", ""}, []string{works}, []string{"ok", "503 no"}, false, "", "", errGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := shaky{
					"/terminal/transcript": {`{"after":0}`}, "/terminal/messages": {`{"messageId":"m"}`},
					"/terminal/stream": tt.streams, "/receipts": tt.receipts, "/healthz": tt.lives,
				}
				if tt.lives == nil {
					d["/healthz"] = []string{"ok"}
				}
				var out, errs strings.Builder
				w := &talk{client: &client{api.New("http://claybot", "", &http.Client{Transport: d})}, out: &out, errs: &errs, json: tt.json}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := w.once(ctx, "hello")
				if !errors.Is(err, tt.err) || out.String() != tt.out || errs.String() != tt.errs {
					t.Errorf("%v\n%q\n%q; want %v\n%q\n%q", err, out.String(), errs.String(), tt.err, tt.out, tt.errs)
				}
			})
		})
	}
}

// What a script has sent comes to its end as well when its stream breaks. It is in no bubble: what
// hears Ctrl-C cannot be in one.
func TestScriptOutlivesItsStream(t *testing.T) {
	d := shaky{
		"/terminal/transcript": {`{"after":0}`}, "/terminal/messages": {`{"messageId":"m"}`}, "/healthz": {"ok"},
		"/terminal/stream": {"", "open" + frames(`message {"kind":"answer","run":"r1","text":"done"}`)},
		"/receipts":        {`{"receipts":[{"messageId":"m","run":{"runId":"r1","state":"SUCCEEDED","output":"done"}}]}`},
	}
	var out, errs strings.Builder
	w := &talk{client: &client{api.New("http://claybot", "", &http.Client{Transport: d})}, out: &out, errs: &errs, waits: []*wait{newWait("m", "hello")}}
	if err := w.converse(t.Context(), strings.NewReader("")); err != nil || !strings.Contains(out.String(), "done") || errs.Len() > 0 {
		t.Errorf("%v: %q %q", err, out.String(), errs.String())
	}
}
