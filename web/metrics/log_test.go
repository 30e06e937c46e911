package metrics

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// The lines of the log say whom they are about, by the same names everywhere,
// and nothing of what was said.
func TestLogFields(t *testing.T) {
	var log lockedBuffer
	r := newRig(t, Config{}, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		llmtest.Say("secret answer"),
		llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Status: 400, Text: "no\x1b[31m\n{\"level\":\"forged\"}"}},
	)
	r.line.fails = 1
	r.say("m1", "secret text")
	r.line.arrived(t, 1)
	r.say("m2", "secret text")
	r.line.arrived(t, 1)
	r.say("m3", "") // refused
	r.line.arrived(t, 1)
	r.post(claybot.User("chat", "dm2", "eve"), "m\x1b4", "secret text")
	r.stop()

	want := map[string][]string{ // by what a line says
		"message accepted":           {"agent", "connector", "message"},
		"run started":                {"agent", "connector", "message", "run"},
		"run ended":                  {"agent", "connector", "run"},
		"run failed":                 {"agent", "connector", "run"},
		"message will not run":       {"agent", "connector", "message"},
		"message of an unknown user": {"connector", "message"},
	}
	seen := make(map[string]bool)
	lines := bufio.NewScanner(strings.NewReader(log.String()))
	for lines.Scan() {
		if strings.ContainsFunc(lines.Text(), unicode.IsControl) {
			t.Errorf("a control character: %q", lines.Text())
		}
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("not a line of JSON: %q: %v", lines.Text(), err)
		}
		said, _ := line["msg"].(string)
		if line["level"] == "forged" || strings.Contains(lines.Text(), "secret") {
			t.Errorf("the log has %s", lines.Text())
		}
		for _, field := range want[said] {
			if v, _ := line[field].(string); v == "" {
				t.Errorf("%q lacks %s: %s", said, field, lines.Text())
			}
		}
		seen[said] = true
	}
	for said := range want {
		if !seen[said] {
			t.Errorf("the log has no line %q:\n%s", said, log.String())
		}
	}
}

// A send that fails says which message of which run it was.
func TestLogOfDelivery(t *testing.T) {
	var log lockedBuffer
	r := newRig(t, Config{}, slog.New(slog.NewJSONHandler(&log, nil)), llmtest.Say("one"))
	r.line.refuse = &connectors.PermanentError{Err: errNo}
	r.say("m1", "hello")
	r.line.arrived(t, 1) // the notice about it
	r.stop()
	var line struct{ Agent, Run, Connector, Message, Outgoing string }
	for text := range strings.Lines(log.String()) {
		if !strings.Contains(text, "delivery failed") {
			continue
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
	}
	if line.Agent == "" || line.Run == "" || line.Connector != "chat" || line.Message != "m1" || line.Outgoing == "" {
		t.Errorf("got %+v in\n%s", line, log.String())
	}
}
