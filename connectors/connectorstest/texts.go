package connectorstest

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

type reader = io.ReadCloser

// opened opens a file with that content.
func opened(data string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil }
}

// file is a file for Ann.
func (w *world) file() claybot.Outgoing {
	o := w.out(Ann, "the report")
	o.Kind, o.File = claybot.OutgoingFile, &claybot.FileReference{ID: "f1", Name: "a.txt", MIMEType: "text/plain", Size: 9, Kind: claybot.FileDocument}
	return o
}

// tryFile sends a file and checks the outcome.
func (w *world) tryFile(o claybot.Outgoing, want string) {
	w.Helper()
	c, ok := w.conn.(connectors.FileSender)
	w.need(ok)
	_, err := c.SendFile(w.Context(), o, opened("the bytes"))
	if got := kindOf(err); got != want {
		w.Errorf("%s (%v), want %s", got, err, want)
	}
}

// fetch downloads a file.
func (w *world) fetch(f connectors.Fetcher, ref claybot.FileReference) string {
	w.Helper()
	body, err := f.Fetch(w.Context(), ref)
	if err != nil {
		w.Fatal(err)
	}
	data, err := io.ReadAll(body)
	if err != nil || body.Close() != nil {
		w.Fatal(err)
	}
	return string(data)
}

// approval is what users are asked.
var approval = claybot.Question{ID: "01QUESTION", Type: claybot.QuestionConfirm, Text: "May I?", Required: true}

// asked asks in a chat and returns the receipt.
func (w *world) asked(c Chat) string {
	w.Helper()
	w.need(w.p.Press != nil)
	w.greeted(c)
	o, q := w.out(c, approval.Text), approval
	o.Question = &q
	return w.send(o)
}

// wantPress checks that a user has approved the question, once.
func (w *world) wantPress(user int) {
	w.Helper()
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	if len(w.inbox.presses) != 1 {
		w.Fatalf("answers %+v", w.inbox.presses)
	}
	p := w.inbox.presses[0]
	value, err := approval.Check(p.Answer.Text, nil)
	if p.Connector != w.conn.Name() || p.UserID != w.p.User(user) || p.Answer.Question != approval.ID || err != nil || string(value) != "true" {
		w.Errorf("answer %+v", p)
	}
}

// longTexts are texts of some messages, without spaces at which text may be left out.
func longTexts() []string {
	all := []string{
		strings.Repeat("word ", 2_400),
		strings.Repeat("A sentence that ends. ", 500),
		strings.Repeat("x", 9_000),
		strings.Repeat("😀", 5_000),
		strings.Repeat("👩‍👩‍👧‍👦", 800),
		strings.Repeat("🇩🇪", 2_500),
		strings.Repeat("e\u0301", 4_500),
		strings.Repeat("שלום עולם ", 900),
		strings.Repeat("مَرْحَبًا 👋🏽 שָׁלוֹם, ", 500),
		strings.Repeat("&<>", 3_000),
		strings.Repeat("a **bold** and `code` word. ", 400),
		"before\n\n```go\n" + strings.Repeat("if a < b && c { return }\n", 400) + "```\n\nafter",
	}
	// Visible characters of several code points, so that the cut meets each of them.
	const cluster = "שָׁל👋🏽مَرْ👩‍👩‍👧"
	for offset := range len([]rune(cluster)) {
		all = append(all, strings.Repeat("x", offset)+strings.Repeat(cluster, 350))
	}
	return all
}

// checkParts checks that the parts are valid and that they joined are the text, but for
// white space and the lines that close and open fences.
func checkParts(w *world, text string, parts []string) {
	w.Helper()
	short := text[:min(len(text), 20)]
	var joined strings.Builder
	for i, part := range parts {
		if !utf8.ValidString(part) || strings.TrimSpace(part) == "" {
			w.Errorf("%q: part %d is cut in a character, or blank", short, i)
		}
		if r, _ := utf8.DecodeRuneInString(part); i > 0 && (unicode.Is(unicode.Mn, r) || r == '\u200d' || '🏻' <= r && r <= '🏿') {
			w.Errorf("%q: part %d begins inside a visible character", short, i)
		}
		joined.WriteString(part)
		joined.WriteString("\n")
	}
	if got := bare(joined.String()); got != bare(text) {
		w.Errorf("%q: %d parts have %d characters, want %d", short, len(parts), len(got), len(bare(text)))
	}
}

// bare is a text without white space and fences.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "```") {
			b.WriteString(strings.Join(strings.Fields(line), ""))
		}
	}
	return b.String()
}
