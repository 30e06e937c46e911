package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/claybot/claybot/client"
)

// A slow daemon tells of each thing at its time, in the order of its script.
type slow struct {
	shaky
	script []timed
}

type timed struct {
	at   time.Duration // after the one before
	line string
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/terminal/stream" {
		return s.shaky.RoundTrip(r)
	}
	in, out := io.Pipe()
	go func() {
		for _, x := range s.script {
			time.Sleep(x.at)
			if _, err := io.WriteString(out, frames(x.line)); err != nil {
				return
			}
		}
		<-r.Context().Done()
		_ = out.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: in, Header: make(http.Header), Request: r}, nil
}

// Where nothing was shown for 15 s after a message, the terminal says once that claybot is
// at work, or why the message waits, on standard error.
func TestChatShowsASignOfLife(t *testing.T) {
	const (
		started  = `event {"type":"RunStarted","runId":"r1","seq":1,"data":{"messages":["m"]}}`
		called   = `event {"type":"ToolCalled","runId":"r1","seq":2,"data":{"tool":"shell"}}`
		finished = `event {"type":"RunFinished","runId":"r1","seq":3,"data":{"output":"done"}}`
		growing  = `preview {"run":"r1","text":"do"}`
		answer   = `message {"kind":"answer","run":"r1","text":"done"}`
		model    = "Still working: waiting for the model.\n"
		shell    = "Still working: running a command.\n"
		held     = "It waits: an operator has stopped it.\n"
	)
	after := func(d time.Duration, first ...string) (all []timed) {
		for _, line := range first {
			all = append(all, timed{time.Second, line})
		}
		return append(all, timed{d, finished}, timed{0, answer})
	}
	for name, tt := range map[string]struct {
		script        []timed
		json          bool
		once, scripts string // on standard error with -m, and line by line
		verdict       string // of the message before its run
	}{
		"a quick model":  {after(10*time.Second, started), false, "", "", ""},
		"a slow model":   {after(22*time.Second, started), false, model, model, ""},
		"a slower model": {after(5*time.Minute, started), false, model, model, ""},
		"a slow tool":    {after(22*time.Second, started, called), false, shell, "", ""},
		"it grows":       {after(22*time.Second, started, growing), false, model, "", ""},
		"JSON":           {after(22*time.Second, started), true, "", model, ""},
		"it starts late": {[]timed{{22 * time.Second, started}, {0, finished}, {0, answer}}, false, model, model, ""},
		"it is held":     {[]timed{{22 * time.Second, started}, {0, finished}, {0, answer}}, false, held, held, "It waits: an operator has stopped it."},
		"it was held":    {after(22*time.Second, started), false, model, model, "It waits: an operator has stopped it."},
	} {
		for _, typed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begin := func(json bool) (*talk, *strings.Builder, *strings.Builder) {
						out, errs := new(strings.Builder), new(strings.Builder)
						d := slow{shaky{
							"/terminal/transcript": {`{"after":0}`}, "/terminal/messages": {`{"messageId":"m"}`},
							"/receipts": {`{"receipts":[{"messageId":"m","verdict":{"outcome":"waiting","text":"` + tt.verdict + `"}}]}`}, "/healthz": {"ok"},
						}, tt.script}
						return &talk{client: &client{api.New("http://claybot", "", &http.Client{Transport: d})}, out: out, errs: errs, json: json, typed: typed}, out, errs
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					once, out, errs := begin(tt.json)
					_ = once.once(ctx, "hello")
					if errs.String() != tt.once || !strings.Contains(out.String(), "done") {
						t.Errorf("-m: %q, %q; want %q", out, errs, tt.once)
					}
					lines, out, errs := begin(false)
					_ = lines.lines(ctx, strings.NewReader("hello\n"), nil)
					if errs.String() != tt.scripts || !strings.Contains(out.String(), "done") {
						t.Errorf("line by line: %q, %q; want %q", out, errs, tt.scripts)
					}
				})
			})
		}
	}
}
