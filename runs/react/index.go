package react

import (
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// The index of notes and skills, with SOUL.md and USER.md before it, stands in the system prompt as it was when the conversation
// began, at the last start, reset or summary. Later changes are messages. So a new note does
// not change the beginning of a request, which providers cache, and every pass on every
// cluster member reads the same index from the history.

// indexes returns the index that stands in the system prompt of a conversation, and the
// newest one that its model knows; nil for none.
func indexes(history []claybot.Record) (first, newest *claybot.Index) {
	rest := claybot.Restored(history)
	for i := range rest {
		switch r := &rest[i]; {
		case r.Type == claybot.RecordSummary: // without one, all that was told is folded away
			first, newest = r.Index, r.Index
		case r.Index == nil:
		case r.Text == "":
			first, newest = r.Index, r.Index
		default:
			newest = r.Index
		}
	}
	return first, newest
}

// disclosed returns a history without the indexes that a run must not see because others
// read it, which now has that one: those that may have notes, or the USER.md, of the agent's person.
func disclosed(history []claybot.Record, now claybot.Index) []claybot.Record {
	hidden := func(r claybot.Record) bool {
		return r.Index != nil && (r.Index.Owner && !now.Owner || r.Index.Person && !now.Person)
	}
	if !slices.ContainsFunc(history, hidden) {
		return history
	}
	history = slices.Clone(history)
	for i, r := range history {
		if hidden(r) { // the record stays, because summaries count records
			history[i].Index = nil
			if r.Type == claybot.RecordIndex {
				history[i].Text = ""
			}
		}
	}
	return history
}

// index makes the index of the moment known to the model, if it does not know it.
func (p *pass) index() error {
	if p.now == nil {
		return nil
	}
	all := p.talk.all()
	_, known := indexes(all)
	before := claybot.Index{}
	if known != nil {
		before = *known
	}
	if p.now.Unread && before.Files != "" {
		p.now.Files, p.now.Person, p.now.Private = before.Files, p.now.Person || before.Person, p.now.Private || before.Private
	}
	p.now.Unread = false
	r := claybot.Record{Type: claybot.RecordIndex, At: claybot.Now(), Run: p.turn.Run.ID, Index: p.now}
	begun := slices.ContainsFunc(claybot.Restored(all), func(r claybot.Record) bool {
		return r.Type == claybot.RecordAssistant || r.Type == claybot.RecordSummary
	})
	if known != nil || begun {
		r.Text = strings.TrimSpace(changedFiles(before.Files, p.now.Files) + "\n" + changed(before.Text, p.now.Text))
	}
	if before.Text == p.now.Text && before.Files == p.now.Files || (known != nil || begun) && r.Text == "" {
		return nil
	}
	if err := p.talk.emit(r); err != nil {
		return err
	}
	p.compaction.window.frame(p.talk.all())
	return nil
}

// leavesOut reports whether a line of an index says how many others are left out.
func leavesOut(l string) bool {
	return strings.HasPrefix(l, "- and ") && strings.Contains(l, " more; ")
}

// changedFiles tells what SOUL.md and USER.md say now; empty if that is what they said before.
func changedFiles(before, now string) string {
	switch {
	case before == now:
		return ""
	case now == "":
		return "SOUL.md and USER.md are gone; what they said holds no longer."
	}
	return "SOUL.md and USER.md have changed. They hold as follows, and no longer as before:\n" + now
}

// changed tells how an index differs from an earlier one, by its lines; empty if it does
// not. What is left out of an index for its length is not called removed.
func changed(before, now string) string {
	removed := slices.DeleteFunc(lines(before), leavesOut)
	var added []string
	cut := false
	for _, l := range lines(now) {
		cut = cut || leavesOut(l)
		if i := slices.Index(removed, l); i >= 0 {
			removed = slices.Delete(removed, i, i+1)
		} else {
			added = append(added, l)
		}
	}
	var parts []string
	if len(added) > 0 {
		parts = append(parts, "New in the list of your notes and skills:\n"+strings.Join(added, "\n"))
	}
	switch {
	case len(removed) > 0 && cut:
		parts = append(parts, "Not in the list of your notes and skills now, which is too long to show all; they may still exist:\n"+strings.Join(removed, "\n"))
	case len(removed) > 0:
		parts = append(parts, "No longer in the list of your notes and skills:\n"+strings.Join(removed, "\n"))
	}
	return strings.Join(parts, "\n")
}

func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
}
