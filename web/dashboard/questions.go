package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/web"
)

// questionPages answers the questions of agents.
type questionPages struct {
	*pages
	rows      lookup
	questions web.Questions
}

func (b *questionPages) routes() []web.Route {
	return []web.Route{
		b.act("POST /ui/questions/{id}", web.Operate, b.answer),
	}
}

// An asked question is shown as a form.
type asked struct {
	viewer
	storage.OpenQuestion
	Who string // the agent, where several ask
}

// Answers reports whether the user may answer.
func (a asked) Answers() bool {
	return a.Operates() && (a.Approves() || !questions.Reserved(a.Question))
}

// fence begins and ends a block that an approval shows an action in.
const fence = "\n```\n"

// Lead is the line above the action of a confirm, empty where there is none.
func (a asked) Lead() string {
	lead, _, _, _ := a.parts()
	return lead
}

// Actions are the blocks that a confirm is about, with every character visible.
func (a asked) Actions() []string {
	if _, actions, _, ok := a.parts(); ok {
		return actions
	}
	return []string{exact(a.Text)}
}

// About are the sentences below the action. In each, every second part was written by
// others, and is shown as code.
func (a asked) About() (sentences [][]string) {
	_, _, about, _ := a.parts()
	for _, line := range about {
		sentences = append(sentences, strings.Split(line, "`"))
	}
	return sentences
}

// parts takes the text of a confirm apart when it is one line, blocks below it, and
// sentences below these.
func (a asked) parts() (lead string, actions, about []string, ok bool) {
	pieces := strings.Split(a.Text+"\n", fence)
	bare := len(pieces) == 1 && a.Tool != "" // an action without arguments
	if bare {
		head, below, _ := strings.Cut(pieces[0], "\n")
		pieces = []string{head, "", below}
	}
	lead = strings.TrimSuffix(strings.TrimPrefix(pieces[0], "**"), "**")
	if len(pieces) < 3 || len(pieces)%2 == 0 || strings.Contains(lead, "\n") || strings.Contains(a.Text, "````") || exact(lead) != lead {
		return "", nil, nil, false
	}
	for i, piece := range pieces[1:] {
		switch {
		case strings.Contains(piece, "```"), i%2 == 1 && i < len(pieces)-2 && !slices.Contains(texts.Everywhere(tools.MoreArguments), piece):
			return "", nil, nil, false
		case i%2 == 0 && !bare:
			actions = append(actions, exact(piece))
		}
	}
	if below := pieces[len(pieces)-1]; below != "" {
		about = strings.Split(exact(strings.TrimSuffix(below, "\n")), "\n")
	}
	return lead, actions, about, true
}

// Editable are the arguments of an action as indented JSON; empty where they cannot be
// edited. Invisible characters are escaped.
func (a asked) Editable() string {
	var lines bytes.Buffer
	if a.Args == "" || json.Indent(&lines, []byte(a.Args), "", "  ") != nil {
		return ""
	}
	var b strings.Builder
	for _, r := range lines.String() {
		if r == '\n' || !hidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible, or changes the direction of others.
func hidden(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' || blank[r]
}

// Lines is the height of the field of the arguments.
func (a asked) Lines() int { return min(max(strings.Count(a.Editable(), "\n")+1, 3), 16) }

// fewOptions is up to how many options are shown side by side.
const fewOptions = 7

// Few reports whether all options can be shown at once.
func (a asked) Few() bool { return len(a.Options) <= fewOptions }

// Chosen reports whether an option is the default answer.
func (a asked) Chosen(option string) bool { return a.Default != "" && a.Default == option }

// openQuestions are those of an agent, or of one of its runs; with no agent, of all.
func (b *questionPages) openQuestions(r *http.Request, agent claybot.AgentID, run claybot.RunID) ([]asked, error) {
	all, err := b.questions.OpenQuestions(r.Context(), agent)
	if err != nil {
		return nil, err
	}
	var open []asked
	for _, q := range all {
		if run == "" || q.Run == run {
			open = append(open, asked{viewer: viewerOf(r), OpenQuestion: q})
		}
	}
	return open, nil
}

// waitingRows is how many pending questions the list of runs shows.
const waitingRows = 10

// A waitingView lists pending questions of all agents.
type waitingView struct {
	Questions []asked
	More      int
}

// readWaiting reads the open questions of all agents, the oldest first.
func (b *questionPages) readWaiting(r *http.Request) (v waitingView, err error) {
	all, err := b.openQuestions(r, "", "")
	if err != nil {
		return v, err
	}
	v.Questions, v.More = cut(all, waitingRows)
	for i, q := range v.Questions {
		if v.Questions[i].Who, err = b.rows.agentName(r.Context(), q.Agent); err != nil {
			return v, err
		}
	}
	return v, nil
}

// reasonRunes is the longest reason of a denial.
const reasonRunes = 500

func (b *questionPages) answer(r *http.Request) (string, error) {
	said, words, err := answerIn(r.Form)
	if err != nil {
		return "", err
	}
	if said.Scope == claybot.ApproveAlways && !viewerOf(r).Administers() {
		return "", errAlways
	}
	said.By, said.Via = web.User(r), claybot.ViaWeb
	id := r.PathValue("id")
	q, err := b.questions.Question(r.Context(), id)
	if err != nil {
		return "", err
	}
	if questions.Reserved(q.Question) && !viewerOf(r).Approves() {
		return "", questions.ErrReserved
	}
	err = b.questions.AnswerQuestion(r.Context(), id, said)
	if errors.Is(err, storage.ErrState) && q.Need > 1 {
		return "", b.another(r.Context(), q, err)
	}
	if err != nil {
		return "", err
	}
	if n := b.questions.Lacking(q.Question, said); n > 0 {
		words = fmt.Sprintf(doneNeedsMore, plural(n, "more approval", "more approvals"))
	}
	return words, nil
}

// another says that the action of an answered approval waits for another one; err
// where it does not.
func (b *questionPages) another(ctx context.Context, q storage.OpenQuestion, err error) error {
	open, failed := b.questions.OpenQuestions(ctx, q.Agent)
	if failed != nil {
		return failed
	}
	next, ok := questions.NextApproval(q.Question, q.Run, open)
	if !ok {
		return err
	}
	return refused(http.StatusConflict, fmt.Sprintf(anotherApproval, next.ID), lookAgain)
}

// answerIn reads the answer from a form, and the toast for it.
func answerIn(f url.Values) (s claybot.Answer, words string, err error) {
	args, reason := strings.TrimSpace(f.Get("args")), strings.TrimSpace(f.Get("reason"))
	switch verdict := f.Get("verdict"); {
	case verdict == "":
		s.Text = strings.Join(f["value"], ", ")
		if f.Has("list") && s.Text != "" { // options may have commas of their own
			list, _ := json.Marshal(f["value"]) // strings always marshal
			s.Text = string(list)
		}
		return s, doneAnswered, nil
	case verdict == "approve":
		return claybot.Answer{Text: "approve"}, doneOnce, nil
	case verdict == "edit" && args == "":
		return s, "", errNoArgs
	case verdict == "edit":
		return claybot.Answer{Text: "approve", Args: args}, doneEdited, nil
	case verdict == "session":
		return claybot.Answer{Text: "approve", Scope: claybot.ApproveSession}, doneSession, nil
	case verdict == "always":
		return claybot.Answer{Text: "approve", Scope: claybot.ApproveAlways}, doneAlways, nil
	case verdict == "deny" && utf8.RuneCountInString(reason) > reasonRunes:
		return s, "", errReason
	case verdict == "deny":
		return claybot.Answer{Text: "deny", Reason: reason}, doneRefused, nil
	}
	return s, "", errVerdict
}

// exact is a text with all characters visible: hidden ones are shown by their number.
func exact(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `[\x%02X]`, text[i])
		case r == '\n':
			b.WriteRune(r)
		case hidden(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blank are letters and marks that are invisible.
var blank = map[rune]bool{
	'\u034f': true, '\u115f': true, '\u1160': true, '\u17b4': true, '\u17b5': true, '\u2800': true, '\u3164': true, '\uffa0': true,
}
