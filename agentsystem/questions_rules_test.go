package agentsystem_test

import (
	"maps"
	"slices"

	"github.com/claybot/claybot"
)

// The rules are what a run that asks makes of answers, without stores, processes
// and chats. What a value must look like is the affair of Question.Check.
type rules struct {
	own    string // the owner id of the run's person
	asked  []claybot.Question
	said   map[string]claybot.Answer
	warned map[string]bool // of which questions an unfit text was told
	gone   bool            // the run was given up
	by     string          // who did
}

func (m *rules) waits() bool                     { return !m.gone && len(m.said) < len(m.asked) }
func (m *rules) silent(q claybot.Question) bool  { return m.waits() && m.said[q.ID].Via == "" }
func (m *rules) expired(q claybot.Question) bool { return claybot.Now() >= q.Expires }
func (m *rules) open(q claybot.Question) bool    { return m.silent(q) && !m.expired(q) }
func (m *rules) may(q claybot.Question, who string) bool {
	return slices.Contains(q.Approvers, who) || len(q.Approvers) == 0 && who == m.own
}

// answer is values by key, in one piece: all count, or none. at is the first
// question whose value does not fit.
func (m *rules) answer(values map[string]string, who string, via claybot.AnswerVia) (reply string, at claybot.Question) {
	all := make(map[string]claybot.Answer)
	for _, q := range m.asked {
		value, given := values[q.Key]
		switch v, err := q.Check(value, nil); {
		case given && via != claybot.ViaHTTP && !m.may(q, who):
			return "not his", q
		case given && !m.open(q):
			return "closed", q
		case given && err == nil:
			all[q.ID] = claybot.Answer{Question: q.ID, Value: v, By: who, Via: via}
		case given && at.ID == "":
			at = q
		}
	}
	if at.ID != "" {
		return "unfit", at
	}
	maps.Copy(m.said, all)
	return "ok", at
}

// text is what the run's own person types. Lines with keys answer those
// questions, anything else the first one; the second text that does not fit a
// question is no answer at all.
func (m *rules) text(lines []keyLine) (reply string) {
	open := slices.DeleteFunc(slices.Clone(m.asked), func(q claybot.Question) bool { return !m.open(q) || !m.may(q, m.own) })
	if len(open) == 0 {
		return map[bool]string{true: "later", false: "ran"}[m.waits()]
	}
	whole, given := readLines(open, lines)
	at := open[0]
	if len(given) == 0 || len(open) == 1 { // also the only one that is open may be meant
		reply, at = m.answer(map[string]string{at.Key: whole}, m.own, claybot.ViaText)
	}
	if reply != "ok" && len(given) > 0 {
		reply, at = m.answer(given, m.own, claybot.ViaText)
	}
	if reply == "unfit" && at.Type == claybot.QuestionConfirm && len(given) == 0 { // it is about something else
		return "later"
	}
	if reply == "unfit" && m.warned[at.ID] {
		m.gone, m.by = true, "message"
		return "ran"
	}
	m.warned[at.ID] = reply == "unfit"
	return reply
}

// tick is that time has passed: what has expired has its default. Silence
// approves nothing, and ends the run where there is no default.
func (m *rules) tick() {
	gone := m.gone
	for _, q := range m.asked {
		if q.Type == claybot.QuestionConfirm {
			q.Default = "no"
		}
		switch v, err := q.Check(q.Default, nil); {
		case !m.silent(q) || !m.expired(q):
		case q.Default == "" || err != nil:
			gone = true
		default:
			m.said[q.ID] = claybot.Answer{Question: q.ID, Value: v, Via: claybot.ViaDefault}
		}
	}
	m.gone = gone
}
