package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// questionPages are the pages of what agents ask.
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
	Who string // the agent that asks, where several do
}

// fence begins and ends the block that an approval shows an action in.
const fence = "\n```\n"

// Lead is the line above the action of a confirm, empty where there is none.
func (a asked) Lead() string {
	lead, _, _ := a.parts()
	return lead
}

// Action is what a confirm is about, all of it, with every character visible.
func (a asked) Action() string {
	if _, action, ok := a.parts(); ok {
		return exact(action)
	}
	return exact(a.Text)
}

// parts takes the text of a confirm apart when it is one line with one block
// below it, and nothing else.
func (a asked) parts() (lead, action string, ok bool) {
	lead, rest, _ := strings.Cut(a.Text, fence)
	action, whole := strings.CutSuffix(rest+"\n", fence)
	if !whole || strings.Contains(lead, "\n") || strings.Contains(action, "```") || exact(lead) != lead {
		return "", "", false
	}
	return lead, action, true
}

// Editable are the arguments of an action as JSON in lines, for who wants to
// change them; empty where that is not possible. Characters that cannot be seen
// are escaped, as JSON has it.
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

// hidden reports whether a character has no look of its own, or turns others
// around.
func hidden(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' || blank[r]
}

// Lines is how high the field of the arguments is.
func (a asked) Lines() int { return min(max(strings.Count(a.Editable(), "\n")+1, 3), 16) }

// fewOptions is up to how many options are shown side by side.
const fewOptions = 7

// Few reports whether all options can be shown at once.
func (a asked) Few() bool { return len(a.Options) <= fewOptions }

// Chosen reports whether an option is the answer when nobody gives one.
func (a asked) Chosen(option string) bool { return a.Default != "" && a.Default == option }

// openQuestions are those of an agent that wait, or of one of its runs.
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

// waitingRows is how many open questions the page of all runs shows.
const waitingRows = 10

// A waitingView is what persons are asked, by whatever agent.
type waitingView struct {
	Questions []asked
	More      int
}

func (b *questionPages) runQuestions(r *http.Request) (any, error) { return b.readWaiting(r) }

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

// answer answers one question; several values are those of a list. An approval
// has a verdict instead, see saidOf.
func (b *questionPages) answer(r *http.Request) (string, error) {
	said, words, err := saidOf(r.Form)
	if err != nil {
		return "", err
	}
	if said.Scope == claybot.ApproveAlways && !viewerOf(r).Administers() {
		return "", refused(http.StatusForbidden, "To approve something for good changes a setting of the agent, which needs the scope admin.", "Approve it once.")
	}
	said.By, said.Via = web.User(r), claybot.ViaWeb
	id := r.PathValue("id")
	q, err := b.questions.Question(r.Context(), id)
	if err != nil {
		return "", err
	}
	err = b.questions.AnswerQuestion(r.Context(), id, said)
	if errors.Is(err, storage.ErrState) && q.Need > 1 {
		return "", b.another(r.Context(), q, err)
	}
	if err != nil {
		return "", err
	}
	if n := b.questions.Lacking(q.Question, said); n > 0 {
		words = "Approved. The run waits for " + plural(n, "more approval", "more approvals") + ", by somebody else."
	}
	return words, nil
}

// another is why an approval takes no answer any more: it has one, and what it is
// about waits for somebody else; err where it does not.
func (b *questionPages) another(ctx context.Context, q storage.OpenQuestion, err error) error {
	open, failed := b.questions.OpenQuestions(ctx, q.Agent)
	if failed != nil {
		return failed
	}
	next, ok := questions.NextApproval(q.Question, q.Run, open)
	if !ok {
		return err
	}
	return refused(http.StatusConflict, "This has an answer already; it now waits for another approval as question "+next.ID+".", "Look at how it stands now.")
}

// saidOf reads the answer from a form, and how its taking is confirmed.
func saidOf(f url.Values) (s questions.Said, words string, err error) {
	switch f.Get("verdict") {
	case "":
		s.Value = strings.Join(f["value"], ", ")
		if f.Has("list") && s.Value != "" { // options may have commas of their own
			list, _ := json.Marshal(f["value"]) // strings always marshal
			s.Value = string(list)
		}
		return s, "Answered. The run goes on.", nil
	case "approve":
		return questions.Said{Value: "approve"}, "Approved. The run goes on.", nil
	case "edit":
		args := strings.TrimSpace(f.Get("args"))
		if args == "" {
			return s, "", refused(http.StatusBadRequest, "There are no arguments.", "Write them as a JSON object, or approve the action as it is.")
		}
		return questions.Said{Value: "approve", Args: args}, "Approved with your arguments. The run goes on.", nil
	case "session":
		return questions.Said{Value: "approve", Scope: claybot.ApproveSession}, "Approved, and not asked again until the next reset.", nil
	case "always":
		return questions.Said{Value: "approve", Scope: claybot.ApproveAlways}, "Approved, now and always. The settings of the agent take it back.", nil
	case "deny":
		reason := strings.TrimSpace(f.Get("reason"))
		if utf8.RuneCountInString(reason) > reasonRunes {
			return s, "", refused(http.StatusBadRequest, "The reason is too long.", "Say it in at most "+strconv.Itoa(reasonRunes)+" characters.")
		}
		return questions.Said{Value: "deny", Reason: reason}, "Denied. The run goes on without it.", nil
	}
	return s, "", refused(http.StatusBadRequest, "There is no such verdict.", "Approve or deny.")
}

// exact is a text whose characters can all be seen: those that have no look of
// their own, or turn others around, are shown by their number.
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

// blank are characters that count as letters or marks and show nothing.
var blank = map[rune]bool{
	'\u034f': true, '\u115f': true, '\u1160': true, '\u17b4': true, '\u17b5': true, '\u2800': true, '\u3164': true, '\uffa0': true,
}
