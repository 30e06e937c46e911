// Package clock holds the tools that know about time: current_time and wait.
// They change nothing, so anybody may try them.
//
// Only cmd imports it.
package clock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// maxWait is the longest wait, in seconds.
const maxWait = 300

// Tools are all tools of this package.
func Tools() []tools.Tool { return []tools.Tool{CurrentTime(), Wait()} }

// CurrentTime tells the date and time in a zone, UTC unless named.
func CurrentTime() tools.Tool {
	type input struct {
		Zone string `json:"zone,omitempty" jsonschema:"such as Europe/Berlin"`
	}
	spec := tools.Spec{
		Tool: llm.Tool{Name: "current_time", Description: "Tells the date and time."}, Public: true, Brief: []string{"zone"},
		Effect: tools.ReadOnly,
		Scopes: []string{"clock"},
	}
	return tools.New(spec, func(_ context.Context, _ tools.Env, in input) (tools.Result, error) {
		zone := in.Zone
		if zone == "Local" { // Go's name for the host's zone, which stays private
			zone = ""
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return tools.Result{}, fmt.Errorf("field zone: unknown time zone %.80q", zone)
		}
		return tools.Result{Text: time.Now().In(loc).Format("Monday, 2 January 2006, 15:04:05 MST (-07:00)")}, nil
	})
}

// Wait lets some seconds pass. It ends early, with an error, when its context
// does.
func Wait() tools.Tool {
	type input struct {
		Seconds float64 `json:"seconds" jsonschema:"how long to wait, 0 to 300"`
	}
	spec := tools.Spec{
		Tool: llm.Tool{Name: "wait", Description: "Waits for a number of seconds, at most 300."}, Public: true,
		Effect:  tools.ReadOnly,
		Scopes:  []string{"clock"},
		Timeout: (maxWait + 10) * time.Second,
	}
	return tools.New(spec, func(ctx context.Context, _ tools.Env, in input) (tools.Result, error) {
		if in.Seconds < 0 || in.Seconds > maxWait {
			return tools.Result{}, errors.New("field seconds: want 0 to 300")
		}
		timer := time.NewTimer(time.Duration(in.Seconds * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return tools.Result{}, context.Cause(ctx)
		case <-timer.C:
			return tools.Result{Text: fmt.Sprintf("waited %g seconds", in.Seconds)}, nil
		}
	})
}
