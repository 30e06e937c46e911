package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/client"
)

// A daemon answers requests in the time of a bubble.
type daemon func(r *http.Request) (status int, body io.Reader)

// RoundTrip implements http.RoundTripper.
func (d daemon) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := d(r)
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(body), Request: r}, nil
}

func (d daemon) client() *client.Client {
	return client.New("http://daemon", "", &http.Client{Transport: d})
}

// A silence is the body of a stream that a proxy cuts off after a while.
type silence time.Duration

// Read implements io.Reader.
func (s silence) Read([]byte) (int, error) {
	time.Sleep(time.Duration(s))
	return 0, io.EOF
}

const finished = "id: 1\nevent: RunFinished\ndata: {\"v\":1,\"runId\":\"r\",\"seq\":1,\"type\":\"RunFinished\",\"at\":1,\"data\":{}}\n\n"

// A stream that is cut off again and again is followed as long as the daemon is there; without
// the daemon, for a minute.
func TestFollowCutStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		cuts int
		open time.Duration
		lost bool
	}{
		"by a load balancer":   {500, time.Minute, false},
		"at once":              {500, 0, true},
		"at once, a few times": {50, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := daemon(func(*http.Request) (int, io.Reader) {
					if n++; n > tt.cuts {
						return http.StatusOK, strings.NewReader(finished)
					}
					return http.StatusOK, silence(tt.open)
				}).client()
				var last claybot.Event
				var lost error
				for e, err := range c.Follow(t.Context(), "r", 0) {
					last, lost = e, err
				}
				if (lost != nil) != tt.lost || !tt.lost && !last.Type.Ends() {
					t.Errorf("after %d streams: %+v, %v", n, last, lost)
				}
			})
		})
	}
}

// Ask tries again to read the output, and an error says of which run.
func TestAskReadsTheOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses []int // of the requests for the output; the last one for all later ones; 0: unreachable
		fails    bool
		requests int
	}{
		"at once":                 {[]int{200}, false, 1},
		"after a restart":         {[]int{0, 503, 200}, false, 3},
		"never":                   {[]int{0}, true, 5},
		"removed by retention":    {[]int{404}, true, 1},
		"busy, and then a denial": {[]int{429, 403}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := daemon(func(r *http.Request) (int, io.Reader) {
					switch {
					case r.Method == http.MethodPost:
						return http.StatusAccepted, strings.NewReader(`{"runId":"r","agentId":"a","state":"PENDING"}`)
					case strings.HasSuffix(r.URL.Path, "/stream"):
						return http.StatusOK, strings.NewReader(finished)
					}
					status := tt.statuses[min(n, len(tt.statuses)-1)]
					n++
					return status, strings.NewReader(`{"runId":"r","state":"SUCCEEDED","output":"done"}`)
				}).client()
				out, err := c.Ask(t.Context(), client.Message{Text: "x"})
				if (err != nil) != tt.fails || out.Run != "r" || n != tt.requests || !tt.fails && out.Text != "done" {
					t.Errorf("%+v, %v after %d requests", out, err, n)
				}
			})
		})
	}
}
