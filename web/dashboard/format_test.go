package dashboard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{money(0), "$0"},
		{money(1), "<$0.0001"},
		{money(1234), "$0.0012"},
		{money(123_456), "$0.123"},
		{money(1_234_567_890), "$1,234.56"},
		{cost(claybot.Usage{}), "–"},
		{cost(claybot.Usage{Input: 1}), "unknown price"},
		{cost(claybot.Usage{Input: 1}, "own"), "unknown price"},
		{cost(claybot.Usage{Input: 1}, freeModel), "free"},
		{cost(claybot.Usage{Input: 1, CostMicroUSD: 20_000}, freeModel), "$0.020"},
		{excerpt(20, "say \u202egnp.exe\u2066 \u2069now"), "say gnp.exe now"},
		{cost(claybot.Usage{Input: 1, CostMicroUSD: 20_000}), "$0.020"},
		{grouped(0), "0"},
		{grouped(999), "999"},
		{grouped(-1234567), "−1,234,567"},
		{tokens(999), "999"},
		{tokens(1000), "1k"},
		{tokens(1_550), "1.6k"},
		{tokens(2_000_000), "2M"},
		{took(-1), "–"},
		{took(0), "0 ms"},
		{took(1500), "1.5 s"},
		{took(61_000), "1 min 1 s"},
		{took(3_700_000), "1 h 1 min"},
		{took(4 * 86_400_000), "4 days"},
		{excerpt(3, " a \n b\tc d"), "a b…"},
		{excerpt(5, "éééééé"), "ééééé…"},
		{excerpt(5, strings.Repeat("x", 1<<20)), "xxxxx…"},
		{excerpt(5, "\xff\xfe"), "\uFFFD\uFFFD"},
		{gist(20, "# Title\n\n**bold** [x](https://e.example)"), "Title bold x (https:…"},
		{pretty(`{"a":"<b>"}`), "{\n  \"a\": \"<b>\"\n}"},
		{pretty(`no JSON`), "no JSON"},
		{plural(1, "run", "runs"), "1 run"},
		{plural(int64(2000), "run", "runs"), "2,000 runs"},
		{why(claybot.MessageID("a/b c&d")), "/ui/why?q=a%2Fb+c%26d"},
		{called(claybot.User("web", "main", "operator")), "web · main"},
		{called(claybot.User("telegram", "4711", "4711")), "telegram · 4711"},
		{called(claybot.User("slack", "T1/C1", claybot.Everyone)), "slack · T1/C1 · everyone"},
		{called(claybot.Descriptor{Type: claybot.AgentCron, UID: "u"}), "cron u"},
		{called(claybot.Descriptor{Type: claybot.AgentHeartbeat}), "heartbeat"},
		{words("some_state"), "some state"},
		{moment(claybot.Time(0)), ""},
		{moment(claybot.Time(1_767_225_600_000)), "2026-01-01T00:00:00Z"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestSettingsForm(t *testing.T) {
	pause := int64(250)
	none := int64(0)
	for _, tt := range []struct {
		form  string
		want  claybot.Settings
		fault string
	}{
		{"", claybot.Settings{}, ""},
		{
			"model=+m+&prompt=a%0D%0Ab&maxSteps=7&debounceMs=250&whenBusy=wait&processBuffer=oneByOne&ownTools=1&tools=x&tools=y",
			claybot.Settings{Model: "m", Prompt: "a\nb", MaxSteps: 7, DebounceMS: &pause, WhenBusy: "wait", ProcessBuffer: "oneByOne", Tools: []string{"x", "y"}},
			"",
		},
		{"debounceMs=0&tools=x", claybot.Settings{DebounceMS: &none}, ""},
		{"maxSteps=0", claybot.Settings{}, ""},
		{"maxSteps=1.5", claybot.Settings{}, "maxSteps: must be a whole number"},
		{"debounceMs=soon&maxSteps=x", claybot.Settings{}, "debounceMs: must be a whole number"},
		{"ownTools=1", claybot.Settings{}, "tools: choose at least one"},
	} {
		f, err := url.ParseQuery(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		got, faults := settingsOf(f)
		if tt.fault != "" {
			field, why, _ := strings.Cut(tt.fault, ": ")
			if !strings.HasPrefix(faults[field], why) {
				t.Errorf("%s: %v, want %q", tt.form, faults, tt.fault)
			}
			continue
		}
		if len(faults) > 0 || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v", tt.form, got, faults)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		words  string
	}{
		{fmt.Errorf("x: %w", storage.ErrNotFound), 404, "Not found."},
		{fmt.Errorf("x: %w", storage.ErrState), 409, "Not possible any more"},
		{web.Refusal("Not that one."), 400, "Not that one."},
		{&questions.AnswerError{Faults: map[string]string{"b": "Two.", "a": "One."}}, 400, "One. Two."},
		{refused(418, "Tea.", ""), 418, "Tea."},
		{errors.New("open /secret/path: no"), 500, "Request failed; see the log."},
	} {
		b := &pages{}
		b.log = slog.New(slog.DiscardHandler)
		w := httptest.NewRecorder()
		b.fail(w, httptest.NewRequest(http.MethodGet, "/ui/runs", nil), tt.err)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.words) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d %s", tt.err, w.Code, w.Body)
		}
	}
}

// What a toast says fits into a header, whatever letters it has.
func TestDone(t *testing.T) {
	w := httptest.NewRecorder()
	(&pages{}).done(w, "Löschen “ok” \x7f\r\n😀 </script>")
	got := w.Header().Get("HX-Trigger")
	for _, c := range []byte(got) {
		if c < ' ' || c >= 0x7F {
			t.Fatalf("the header is %q", got)
		}
	}
	if w.Code != http.StatusNoContent || !strings.HasPrefix(got, `{"toast":"L\u00f6schen`) {
		t.Errorf("%d %s", w.Code, got)
	}
}

// Markdown makes only the tags of the style, whatever it is made of.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		"# a\n\n- b\n\n1. c", "[x](javascript:alert(1))", "<script>alert(1)</script>", "![x](http://e.example/\"onerror=1)", "```html\n<b>\n```",
		"[a](https://e.example/?\"><script>)", "\x00\xff<", "> <svg onload=1>", "| <i> |\n|---|\n| <b> |",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := string(markdown(s))
		for rest := out; ; {
			at := strings.IndexByte(rest, '<')
			if at < 0 {
				break
			}
			rest = rest[at+1:]
			tag, after, ok := strings.Cut(rest, ">")
			if !ok {
				t.Fatalf("%q has an open tag", out)
			}
			name, attrs, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
			if !strings.Contains(" strong em del code pre h3 h4 h5 h6 blockquote p li ul ol hr br a ", " "+name+" ") || name == "" {
				t.Fatalf("%q makes the tag %q", s, tag)
			}
			if name == "a" && attrs != "" && !strings.HasPrefix(strings.ToLower(attrs), `href="http`) && !strings.HasPrefix(strings.ToLower(attrs), `href="mailto`) {
				t.Fatalf("%q makes a link %q", s, attrs)
			}
			rest = after
		}
	})
}
