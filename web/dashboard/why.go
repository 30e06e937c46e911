package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// refLimit is the most bytes that are looked up.
const refLimit = 2000

// A whyView is the trace of the messages that ?q= names.
type whyView struct {
	viewer
	Ref     string
	Self    string // the query of this page
	Stories []storyView
	Asked   bool
}

// Title implements titled.
func (whyView) Title() string { return "Trace" }

func (b *healthPages) whyOf(r *http.Request) (any, error) {
	v := whyView{viewer: viewerOf(r), Ref: strings.ToValidUTF8(strings.TrimSpace(r.URL.Query().Get("q")), "")}
	if len(v.Ref) > refLimit {
		v.Ref = strings.ToValidUTF8(v.Ref[:refLimit], "")
	}
	if v.Ref == "" {
		return v, nil
	}
	v.Asked, v.Self = true, url.Values{"q": {v.Ref}}.Encode()
	stories, err := b.system.Why(r.Context(), v.Ref)
	if ignoreGone(err) != nil {
		return nil, err
	}
	for _, s := range stories {
		v.Stories = append(v.Stories, viewStory(s))
	}
	return v, nil
}

// stepRows is the most steps that are shown of one message; the page of the run
// has all.
const stepRows = 200

// A storyView is the trace of one message.
type storyView struct {
	overview.Story
	Title   string // what it is and who it is from
	Preview string
	mark
	Verdict string // in a sentence or two
	Steps   []stepView
	Cut     int // steps that are left out between the first and the last ones
	Replies []deliveryView
	Advice  []advice
}

// A stepView is one line of the receipt.
type stepView struct {
	overview.Step
	Tone  string
	Title string
	// Gap is how long nothing happened before it, in milliseconds, where that
	// is long enough to be told.
	Gap int64
}

func viewStory(s overview.Story) storyView {
	v := storyView{Story: s, Title: storyTitle(s.Message), Preview: connectors.OneLine(wordsOf(s.Message), 280)}
	for _, o := range s.Receipt.Replies {
		v.Replies = append(v.Replies, viewDelivery(o))
	}
	sum := s.Verdict()
	v.mark, v.Verdict = cmp.Or(outcomeMarks[sum.Outcome], mark{"calm", ""}), sum.Text
	if s.Parked != "" {
		v.mark = mark{"warn", "parked"}
	}
	if s.Fault != "" {
		v.Tone = "warn"
	}
	v.Steps, v.Cut = viewSteps(s)
	v.Advice = advise(s)
	return v
}

// storyTitle says what a message is and who sent it, by the name that the platform
// reported.
func storyTitle(m claybot.AgentMessage) string {
	what := cmp.Or(messageWords[m.Type], "Message")
	if m.Type == claybot.MessageSystem {
		what = cmp.Or(systemWords[m.Kind], what)
	}
	from := connectors.OneLine(m.From.Name, 60)
	switch {
	case from == "" && m.From.UserID != "":
		from = "user " + connectors.OneLine(m.From.UserID, 60)
	case from == "" && m.From.Agent != "":
		from = "agent " + string(m.From.Agent)
	}
	if from == "" {
		return what
	}
	return what + " from " + from
}

// viewSteps shows the steps of a message, of very many the first and the last ones.
func viewSteps(s overview.Story) (steps []stepView, cut int) {
	const toldGap = 2000 // ms
	all := s.Steps
	if cut = len(all) - stepRows; cut > 0 {
		all = slices.Concat(all[:stepRows/2], all[len(all)-stepRows/2:])
	}
	var before claybot.Time
	for i, step := range all {
		v := stepView{Step: step, Tone: cmp.Or(stepTones[step.What], "calm"), Title: strings.ReplaceAll(step.What, "_", " ")}
		if step.What == "end" && s.Run != nil {
			v.Tone = tone(s.Run.State)
		}
		skipped := cut > 0 && i == stepRows/2
		if gap := int64(step.At - before); before != 0 && gap >= toldGap && !skipped {
			v.Gap = gap
		}
		before = max(before, step.At) // what is still to come has no time
		steps = append(steps, v)
	}
	return steps, max(cut, 0)
}

// stepTones are the colours of the steps of a trace; others are calm.
var stepTones = map[string]string{
	"sent": "good", "answer": "good", "failed": "bad", "skipped": "bad", "waiting": "busy", "sending": "busy", "question": "busy", "ambiguous": "warn",
}

// at is an advice whose link leads to a page.
func (a advice) at(page map[string]string) advice {
	a.URL = cmp.Or(page[a.URL], a.URL)
	return a
}

// advise says what to do about a message that was not answered.
func advise(s overview.Story) (all []advice) {
	agent := "/ui/agents/" + string(s.Agent)
	pages := map[string]string{"agent": agent, "run": "/ui/runs/" + string(s.Busy)}
	if a, ok := skipAdvice[s.Skipped]; ok {
		all = append(all, a.at(pages))
	}
	switch {
	case s.Fault != "":
		all = append(all, adviceFault)
	case s.Run != nil:
		all = append(all, adviseRun(*s.Run, agent)...)
	case s.Skipped != "":
	case s.Parked == storage.ParkedUnapproved:
		all = append(all, adviceUnapproved)
	case s.Parked != "":
		all = append(all, adviceParked)
	case s.Paused != nil:
		all = append(all, advicePaused.at(pages))
	case s.Busy != "":
		all = append(all, adviceBehind.at(pages))
	}
	lost, late := false, false
	for _, o := range s.Receipt.Replies {
		lost = lost || o.State == claybot.SendFailed
		late = late || o.State != claybot.SendFailed && o.State != claybot.SendSent
	}
	switch {
	case lost:
		all = append(all, adviceLost)
	case late:
		all = append(all, adviceLate)
	}
	return all
}

// adviseRun says what to do about a run that is paused or failed.
func adviseRun(r claybot.Run, agent string) []advice {
	pages := map[string]string{"agent": agent, "run": "/ui/runs/" + string(r.ID)}
	switch r.State {
	case claybot.RunAwaiting:
		return []advice{adviceAnswer.at(pages)}
	case claybot.RunFailed:
		code := ""
		if r.Error != nil {
			code = r.Error.Code
		}
		a, ok := runAdvice[code]
		if !ok {
			a = runAdvice[""]
		}
		return []advice{a.at(pages)}
	}
	return nil
}
