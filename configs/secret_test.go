package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	s := NewSecret("TELEGRAM_BOT_TOKEN", "canary")
	outer := struct {
		Public Secret
		hidden Secret
		inner  struct{ hidden *Secret }
	}{Public: s, hidden: s}
	outer.inner.hidden = &s
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%08.3f", "%!"} {
		for _, v := range []any{s, &s, []Secret{s}, map[string]Secret{"k": s}, outer, &outer, Telegram{Token: s}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprintln(&out, s, outer, fmt.Errorf("start: %v", s))
	for _, v := range []any{s, outer, map[string]any{"a": s}, Config{Connectors: Connectors{Telegram: Telegram{Token: s}}}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).With("s", s).Info("x", "secret", s, "in", outer, "list", []Secret{s}, "p", &s)
	}
	hex := fmt.Sprintf("%x", "canary")
	if text := out.String(); strings.Contains(text, "canary") || strings.Contains(strings.ToLower(text), hex) {
		t.Errorf("the secret is shown:\n%s", text)
	}
	if !strings.Contains(out.String(), "TELEGRAM_BOT_TOKEN") {
		t.Error("the name is not shown")
	}
	if s.Value() != "canary" || !s.Named() {
		t.Errorf("Value = %q, Named = %v", s.Value(), s.Named())
	}
	if zero := (Secret{}); zero.Value() != "" || zero.Named() || zero.String() != "(not set)" {
		t.Errorf("zero secret: %q %v %s", zero.Value(), zero.Named(), zero)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"debounceMs", "debounceMaxMs", "maxBatch", "log", "log_level", "http"}
	for key, want := range map[string]string{
		"debounceMs": "debounceMs", "DEBOUNCE_MS": "debounceMs", "debouncMaxMs": "debounceMaxMs", "max-batch": "maxBatch",
		"lgo": "log", "loglevel": "log_level", "x": "", "": "", "completely_different": "",
		strings.Repeat("a", 100_000): "",
	} {
		if got := Nearest(key, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", key, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"", "abc", 3}, {"abc", "", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// F15: whatever the file and the environment hold, Load neither panics nor
// shows a secret, and what it returns keeps its rules.
func FuzzLoad(f *testing.F) {
	for _, tt := range slices.Concat(broken, brokenSociety, brokenSchedule, brokenDeep, brokenPlan, brokenExplore, brokenPrompts, brokenWeb) {
		f.Add(tt.file, "telegram:1,slack:U1")
	}
	f.Add("a: &a [*a, *a]\n", "::,")
	f.Add("{? {? {}}}", "web:a")
	f.Fuzz(func(t *testing.T, text, env string) {
		vars := map[string]string{"CLAYBOT_ALLOW": env, "CLAYBOT_ACCESS": env, "CLAYBOT_HTTP_ADDR": env, "OPENAI_BASE_URL": env, "X": canary}
		r := &reader{env: environ(vars), dir: t.Name()}
		c, err := r.read(FileName, []byte(text))
		if err != nil {
			return
		}
		if !strings.Contains(text+env, "canary") {
			for _, w := range r.warnings {
				if strings.Contains(w.String(), "canary") {
					t.Errorf("a secret is shown: %s", w)
				}
			}
		}
		if m := c.Access.Mode; m != AccessPairing && m != AccessAllowlist && m != AccessOpen {
			t.Errorf("access mode %q", m)
		}
		def, ok := c.Agents.Profiles[DefaultProfile]
		if !ok {
			t.Fatal("no default profile")
		}
		for _, p := range c.Agents.Profiles {
			if w := p.ContextWindow; w != 0 && (w < minWindow || w > maxWindow) {
				t.Errorf("context window %d", w)
			}
			if p.Engine.Deep != nil {
				checkDeep(t, *p.Engine.Deep)
			}
			checkPlan(t, p)
			if p.MaxSteps < 1 || p.Inbox.MaxBatch < 1 || p.Inbox.MaxBatch > 1000 || p.Inbox.Debounce < 0 || p.Inbox.DebounceMax < p.Inbox.Debounce {
				t.Errorf("profile %+v", p)
			}
		}
		checkSociety(t, c)
		checkSchedule(t, c)
		_ = fmt.Sprintf("%+v", def)
	})
}
