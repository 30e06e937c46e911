package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

const table = "| Pot | Price |\n|:--|--:|\n| **vase** | 12 |\n| cup | |"

// kinds are the types of the blocks of a message.
func kinds(m slacktest.Message) (all []string) {
	for _, b := range m.Blocks {
		all = append(all, fmt.Sprint(b["type"]))
	}
	return all
}

// What mrkdwn cannot show is sent as blocks, and the text stays. The emulator refuses what Slack refuses:
// docs.slack.dev/reference/block-kit/blocks/markdown-block and …/table-block, read 2026-11-30.
func TestRich(t *testing.T) {
	wide := strings.Repeat("| a ", 21) + "|\n" + strings.Repeat("|-", 21) + "|\n" + strings.Repeat("| 1 ", 21) + "|"
	for _, c := range []struct{ name, md, kinds, shown string }{
		{"words", "**hello**\n\n- a\n- b", "", "*hello*\n\n• a\n• b"},
		{"table", "Prices:\n\n" + table + "\n\nThat is *all*.", "markdown table markdown", "Prices:\nPot │ Price\nvase │ 12\ncup │  \nThat is *all*."},
		{"only a table", table, "table", "Pot │ Price\nvase │ 12\ncup │  "},
		{"heading", "# Pots\n\nare **clay**", "markdown", "# Pots\n\nare **clay**"},
		{"tasks", "- [ ] fire\n- [x] glaze", "markdown", "- [ ] fire\n- [x] glaze"},
		{"two tables", table + "\n\nand\n\n|a|\n|-|\n|`<!here>`|", "table section", "Pot │ Price\nvase │ 12\ncup │  \nand\n\n```\na\n-------\n&lt;!here&gt;\n```"},
		{"wide", wide, "markdown", "```\n" + strings.TrimSpace(strings.Repeat("a  ", 21)) + "\n" + strings.TrimSpace(strings.Repeat("-  ", 21)) + "\n" + strings.TrimSpace(strings.Repeat("1  ", 21)) + "\n```"},
		{"mention beside a table", "<!channel> see\n\n|<@U1>|\n|-|\n|&lt;!here&gt;|", "section table", "&lt;!channel&gt; see\n<@U1>\n<!here>"},
		{"mention below a heading", "# Hi\n\n<\\!channel>", "", "*Hi*\n\n&lt;!channel&gt;"},
		{"table in a quote", "> |a|\n> |-|", "", "> ```\n> a\n> -\n> ```"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.slack.DM("U1", "hi")
				if _, err := w.Send(t.Context(), outgoing("DU1", "", c.md)); err != nil {
					t.Fatal(err)
				}
				m := w.slack.Posted("DU1")[0]
				if got := strings.Join(kinds(m), " "); got != c.kinds || m.Shown() != c.shown || m.Unfurl || len(w.slack.Calls(methodPost)) != 1 {
					t.Errorf("%q shows %q, want %q %q", got, m.Shown(), c.kinds, c.shown)
				}
				if m.Text != mrkdwn(c.md) {
					t.Errorf("without blocks it says %q", m.Text)
				}
			})
		})
	}
}

// A table that is no block has its columns aligned, which may be far longer than what was written: then no blocks are
// sent that Slack would refuse.
func TestRichTooLong(t *testing.T) {
	second := "|a|b|\n|-|-|\n|" + strings.Repeat("x", 500) + "|1|\n" + strings.Repeat("|b|2|\n", 60)
	for _, words := range []string{"and", "<@U1> and"} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.DM("U1", "hi")
			md := table + "\n\n" + words + "\n\n" + second + strings.Repeat("\n|c|\n|-|\n", 4)
			if parts := w.Split(md); len(parts) != 1 {
				t.Fatalf("%d parts", len(parts))
			}
			if _, err := w.Send(t.Context(), outgoing("DU1", "", md)); err != nil {
				t.Fatal(err)
			}
			m := w.slack.Posted("DU1")[0]
			if calls := len(w.slack.Calls(methodPost)); calls != 1 || len(m.Blocks) != 0 {
				t.Errorf("%s: %d calls, blocks %q", words, calls, kinds(m))
			}
		})
	}
}

// An edit has the blocks of its new text. A question keeps sections, and a text that grows has no blocks
// until its end.
func TestRichEdit(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.DM("U1", "hi")
		o := outgoing("DU1", "", "see\n\n"+table)
		var err error
		for _, step := range []struct {
			change func()
			kinds  string
		}{
			{func() { o.Progress = true }, ""},
			{func() { o.Progress = false }, "markdown table"},
			{func() { o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo r1"}} }, "markdown table actions"},
			{func() {
				o.Offer, o.Question = nil, &claybot.Question{ID: "q1", Text: "Pay?", Type: claybot.QuestionConfirm, Required: true}
			}, "section actions"},
			{func() { o.Question, o.Text = nil, "done" }, ""},
		} {
			step.change()
			o.Edit, err = w.Send(t.Context(), o)
			if got := strings.Join(kinds(w.slack.Posted("DU1")[0]), " "); err != nil || got != step.kinds {
				t.Errorf("%q, want %q: %v", got, step.kinds, err)
			}
		}
	})
}

// What Slack refuses is sent in a simpler form, and at last as text: no reply is lost. It is found as any other.
func TestRichRefused(t *testing.T) {
	for _, code := range []string{"invalid_blocks", "only_one_table_allowed", "msg_blocks_too_long"} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.DM("U1", "hi")
			o := outgoing("DU1", "", table)
			o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo r1"}}
			for _, want := range []string{"section actions", ""} {
				w.slack.Fail(methodPost, slacktest.Fault{Error: code})
				if want == "" {
					w.slack.Fail(methodPost, slacktest.Fault{Error: code})
				}
				ts, err := w.Send(t.Context(), o)
				all := w.slack.Posted("DU1")
				m := all[len(all)-1]
				if got := strings.Join(kinds(m), " "); err != nil || got != want || m.TS != ts || m.Text != mrkdwn(table) {
					t.Errorf("%s: %q %q: %v", code, got, m.Text, err)
				}
			}
		})
	}
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.DM("U1", "hi")
		w.slack.Fail(methodPost, slacktest.Fault{Lost: true, Done: true})
		o := outgoing("DU1", "", table)
		_, err := w.Send(t.Context(), o)
		ts, found, lost := w.Find(t.Context(), o)
		if m := w.slack.Posted("DU1"); err == nil || lost != nil || !found || len(m) != 1 || m[0].TS != ts || kinds(m[0])[0] != "table" {
			t.Errorf("%v; %q %v %v", err, ts, found, lost)
		}
	})
}

// A stream whose text has a table at its end is completed, and then shows the table; only once, although an
// answer is lost or the process ends.
func TestRichStream(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, w *world, g *grown)
	}{
		{"whole", nil},
		{"lost", func(t *testing.T, w *world, g *grown) {
			w.slack.Fail(methodUpdate, slacktest.Fault{Lost: true, Done: true})
			if err := g.end(g.text() + "\n\n" + table); err == nil {
				t.Error("no error")
			}
		}},
		{"restart", func(t *testing.T, w *world, _ *grown) { w.restart(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.start(t)
				g := w.grow(t, "C1", "U1", "o1")
				must(t, g.step(3))
				if c.do != nil {
					c.do(t, w, g)
				}
				must(t, g.end(g.text()+"\n\n"+table))
				w.whole(t, "C1", mrkdwn(g.text()+"\n\n"+table))
				if m := w.slack.Posted("C1")[0]; !slices.Equal(kinds(m), []string{"markdown", "table"}) {
					t.Errorf("shown as %q", kinds(m))
				}
			})
		})
	}
}

// A message has one table, and a table that is cut has its headings again. Nothing is lost.
func TestSplitTables(t *testing.T) {
	rows := func(n, width int) string {
		b := "| No | Name |\n|--|--|"
		for i := range n {
			b += fmt.Sprintf("\n| %d | %s |", i, strings.Repeat("x", width))
		}
		return b
	}
	long := strings.Repeat("All of this is said about pots. ", 120)
	for _, c := range []struct {
		name, md string
		kinds    []string // of each part
	}{
		{"short", "a\n\n" + table + "\n\nb", []string{"markdown table markdown"}},
		{"two", "a\n\n" + table + "\n\n## b\n\n" + table + "\n\nc", []string{"markdown table", "markdown table markdown"}},
		{"behind a long text", long + "\n\n" + rows(20, 20), []string{"", "table"}},
		{"many characters", "a\n\n" + rows(200, 40) + "\n\nb", []string{"", "table", "table", "table", ""}},
		{"many rows", rows(250, 1), []string{"table", "table", "table"}},
		{"many tables", strings.Repeat("|x|\n|-|\n\n", 6), []string{"table markdown"}},
		{"a long row", rows(1, 5_000), nil},
		{"long headings", "|" + strings.Repeat("h", 5_000) + "|\n|-|", nil},
	} {
		parts := New(Config{}).Split(c.md)
		var got []string
		for _, p := range parts {
			if n := escapedChars(p); n > maxTextChars {
				t.Errorf("%s: a part has %d characters", c.name, n)
			}
			got = append(got, strings.Join(kinds(blocksOf(t, p)), " "))
		}
		if c.kinds != nil && !slices.Equal(got, c.kinds) {
			t.Errorf("%s: %q, want %q", c.name, got, c.kinds)
		}
		if have, want := strings.Count(strings.Join(parts, ""), "x"), strings.Count(c.md, "x"); have != want {
			t.Errorf("%s: %d of %d are left", c.name, have, want)
		}
	}
}

// Long headings are not repeated above each row.
func TestSplitLongHeadings(t *testing.T) {
	md := "|" + strings.Repeat("h", 3_800) + "|\n|-|" + strings.Repeat("\n|"+strings.Repeat("x", 30)+"|", 100)
	if parts := New(Config{}).Split(md); len(parts) > 3 || strings.Count(strings.Join(parts, ""), "x") != 3_000 {
		t.Errorf("%d parts", len(parts))
	}
}

// Slack gets no Markdown in which it may find a mention, however that is written.
func TestRichMentions(t *testing.T) {
	for md, want := range map[string]bool{
		"a < b, a <- b, a <= b, <b>AT&T</b> &amp; <https://a.example>": false,
		"<@U1>": true, "<#C1>": true, "<!here>": true, "<\\!here>": true, "<**!here**>": true, "<\u200b!here>": true,
		"&lt;!here>": true, "&LT;!here>": true, "&#60;!here>": true, "<&excl;here>": true, "<&commat;U1>": true, "<&num;C1>": true, "<`!here`>": true,
	} {
		if got := mayMention(md); got != want {
			t.Errorf("%q: %v", md, got)
		}
		if blocks := rich("# Hi\n\n" + md); (len(blocks) == 0) != want {
			t.Errorf("%q: %d blocks", md, len(blocks))
		}
	}
}

// blocksOf are the blocks of a text, which the emulator takes.
func blocksOf(t *testing.T, md string) (m slacktest.Message) {
	t.Helper()
	data := compact(rich(md))
	if err := slacktest.CheckBlocks([]byte(data)); err != nil {
		t.Errorf("%q: %v", md, err)
	}
	if err := connectors.Decode([]byte(data), &m.Blocks); err != nil {
		t.Error(err)
	}
	return m
}

// Slack takes the blocks of every text that it takes, and finds no mention in them.
func FuzzRich(f *testing.F) {
	for _, s := range []string{table, "# a\n<@U1>", "|<!here>|\n|-|\n\n&lt;!here>", "|a|\n|-|\n\n|```|\n|-|\n\n- - x", "|\u200b|\n|-|\n\n<!-- x -->\n# y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		if !utf8.ValidString(md) {
			return
		}
		for _, part := range New(Config{}).Split(md) {
			for _, b := range blocksOf(t, part).Blocks {
				if text, ok := b["text"].(string); ok && strings.Contains(text, "<!") {
					t.Errorf("%q became %q", part, text)
				}
			}
		}
	})
}
