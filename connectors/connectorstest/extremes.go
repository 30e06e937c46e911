package connectorstest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// edges are lengths around the limits that platforms document for labels, values, options, blocks
// and placeholders: each limit, and one character more.
var edges = []int{1, 20, 21, 45, 46, 64, 65, 75, 76, 80, 81, 100, 101, 150, 151, 255, 256, 2000, 2001, 3000, 3001}

// counts are the same of buttons and options.
var counts = []int{2, 5, 6, 8, 9, 10, 11, 20, 21, 24, 25, 26, 99, 100, 101}

// letters have one byte, two bytes from the right to the left, and four bytes that are two UTF-16
// units; the last one grows where it is escaped.
var letters = []string{"x", "ש", "😀", "&"}

// maxCaption is the longest caption that a connector gets, in UTF-16 units.
const maxCaption = 960

// options are n different ones of a length.
func options(n, length int, letter string) (all []string) {
	for i := range n {
		number := fmt.Sprint(i + 1)
		all = append(all, number+strings.Repeat(letter, max(0, length-len(number))))
	}
	return all
}

// extremeQuestions are questions and offers with one length at or behind a limit.
func (w *world) extremeQuestions() (all []claybot.Outgoing) {
	ask := func(q claybot.Question) {
		q.ID, q.Required = fmt.Sprintf("01QUESTION%016d", len(all)), true
		if q.Text == "" {
			q.Text = "Which one?"
		}
		o := w.out(Ann, q.Text)
		o.Question = &q
		all = append(all, o)
	}
	for _, n := range counts {
		ask(claybot.Question{Type: claybot.QuestionSelect, Options: options(n, 12, "x")})
		ask(claybot.Question{Type: claybot.QuestionMultiselect, Options: options(n, 12, "x")})
		o := w.out(Ann, "Done.")
		for i := range n {
			o.Offer = append(o.Offer, claybot.Offer{Label: fmt.Sprint("Undo ", i), Command: fmt.Sprint("/undo ", i)})
		}
		all = append(all, o)
	}
	for _, n := range edges {
		for _, letter := range letters {
			long := strings.Repeat(letter, n)
			ask(claybot.Question{Type: claybot.QuestionSelect, Options: options(3, n, letter)})
			ask(claybot.Question{Type: claybot.QuestionMultiselect, Options: options(30, n, letter)})
			ask(claybot.Question{Type: claybot.QuestionText, Placeholder: long, Example: long, Default: long})
			o := w.out(Ann, "Done.")
			o.Offer = []claybot.Offer{{Label: long, Command: "/undo"}, {Label: "Undo", Command: "/undo " + long}}
			all = append(all, o)
		}
	}
	return all
}

// extremeFiles are files whose names and captions are as long as a connector gets them.
func (w *world) extremeFiles() (all []claybot.Outgoing) {
	add := func(name, caption string) {
		for _, resent := range []bool{false, true} {
			o := w.file()
			f := *o.File
			if name != "" {
				f.Name = name
			}
			o.File, o.Text, o.Resent = &f, caption, resent
			all = append(all, o)
		}
	}
	for _, letter := range []string{"x", "ש", "😀", "&", "*", "<", "`", "שלום 👋🏽 ", "**a** "} {
		n := maxCaption / len(utf16.Encode([]rune(letter)))
		add("", strings.Repeat(letter, n))
	}
	for _, n := range []int{60, 64, 100, 251} {
		for _, letter := range letters {
			add(strings.Repeat(letter, n)+".txt", "the report")
		}
	}
	for _, name := range []string{`a "b" c.txt`, "שלום.txt", "a\\b.txt", "…"} {
		add(name, "")
	}
	return all
}

// extremes are the checks of what is as long as it can be.
var extremes = []check{
	{"Files, buttons", "questions and offers of any size are accepted", func(w *world) {
		w.need(w.p.Press != nil)
		w.greeted(Ann)
		for _, o := range w.extremeQuestions() {
			before, shown := w.p.Sends(), len(w.p.Shown(Ann))
			w.send(o)
			if n := w.p.Sends() - before; n != 1 || len(w.p.Shown(Ann)) != shown+1 {
				w.Errorf("%d calls for %s: the first one was refused", n, described(o))
			}
			time.Sleep(3 * time.Second)
		}
	}},
	{"Files, buttons", "names and captions of any length are accepted", func(w *world) {
		fs, ok := w.conn.(connectors.FileSender)
		w.need(ok, w.p.Files != nil)
		w.greeted(Ann)
		for _, o := range w.extremeFiles() {
			before := len(w.p.Files(Ann))
			if _, err := fs.SendFile(w.Context(), o, opened("the bytes")); err != nil || len(w.p.Files(Ann)) != before+1 {
				w.Errorf("%.30q, resent %v, with a caption of %d characters, %.20q: %v", o.File.Name, o.Resent, len([]rune(o.Text)), o.Text, err)
			}
			time.Sleep(3 * time.Second)
		}
	}},
}

// described says what is long in o.
func described(o claybot.Outgoing) string {
	if q := o.Question; q != nil {
		longest := ""
		if len(q.Options) > 0 {
			longest = slices.MaxFunc(q.Options, func(a, b string) int { return len(a) - len(b) })
		}
		return fmt.Sprintf("a question of type %s with %d options of up to %d characters (%.12q) and a placeholder of %d (%.12q)",
			q.Type, len(q.Options), len([]rune(longest)), longest, len([]rune(q.Placeholder)), q.Placeholder)
	}
	return fmt.Sprintf("%d offers, the first label of %d characters (%.12q), the last command of %d", len(o.Offer), len([]rune(o.Offer[0].Label)), o.Offer[0].Label, len(o.Offer[len(o.Offer)-1].Command))
}
