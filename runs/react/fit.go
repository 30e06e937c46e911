package react

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// wasCut stands in a summary for text that was not summarized.
const wasCut = "(earlier conversation was cut)"

// Limits of the texts of a request that would not fit otherwise, in bytes. What
// people and the model said is worth more than what tools returned, and the
// newest records are worth more than older ones.
const (
	longestCut   = 16 << 10
	shortestCut  = 512
	worthOfTalk  = 4
	fresh        = 8 // records
	worthOfFresh = 8
)

// chat is the chat that records come to; without tools, it shows none of those
// that other runs had.
func (w *window) chat(records []claybot.Record) []llm.Message {
	if len(w.tools) == 0 {
		return llm.MessagesWithoutTools(records)
	}
	return llm.Messages(records)
}

// fitting is the chat of the next request. What does not fit is cut in the
// request alone, never in history: long texts first, then the oldest records.
// The newest messages of the run are never left out.
func (w *window) fitting(records []claybot.Record, run claybot.RunID) []llm.Message {
	summary, rest := llm.Folded(records)
	if w.scaled(w.request(summary, rest)) <= 2*w.room() { // else it is not worth building
		if chat := w.kept.chat.Messages(records, len(w.tools) > 0, len(w.kept.history)); w.fits(chat) {
			return chat
		}
	}
	var chat []llm.Message
	for limit := longestCut; limit >= shortestCut; limit /= 2 {
		if chat = w.chat(shorter(summary, rest, limit)); w.fits(chat) {
			return chat
		}
	}
	for n := len(rest) / 2; n > 0; n /= 2 {
		if chat = w.chat(shorter(cutMark(summary), newest(rest, run, n), shortestCut)); w.fits(chat) {
			return chat
		}
	}
	// What the run is about alone, ever shorter.
	for limit := shortestCut; limit >= shortestCut/worthOfFresh; limit /= 2 {
		if chat = w.chat(shorter(cutMark(nil), newest(rest, run, 1), limit/worthOfTalk)); w.fits(chat) {
			return chat
		}
	}
	return chat // the provider may still take it
}

func (w *window) fits(chat []llm.Message) bool { return w.tokens(chat) <= w.room() }

// cutMark is a summary that says that records are missing behind it.
func cutMark(summary *claybot.Record) *claybot.Record {
	marked := claybot.Record{Type: claybot.RecordSummary, Text: wasCut}
	if summary != nil {
		marked.Text = withMark(summary.Text)
	}
	return &marked
}

// withMark adds to a summary that records are missing behind it.
func withMark(text string) string {
	if text == "" || strings.HasSuffix(text, wasCut) {
		return wasCut
	}
	return text + "\n\n" + wasCut
}

// newest are the last n records, and before them the newest messages of the run.
func newest(records []claybot.Record, run claybot.RunID, n int) []claybot.Record {
	var kept []claybot.Record
	pinned := 0
	for i, r := range slices.Backward(records) {
		mine := r.Run == run && said(r)
		if mine {
			pinned++
		}
		if i >= len(records)-n || mine && pinned <= keepNewest {
			kept = append(kept, r)
		}
	}
	slices.Reverse(kept)
	return kept
}

// said reports whether a person, and not the model, says r.
func said(r claybot.Record) bool {
	return r.Type == claybot.RecordUser || r.Type == claybot.RecordSystem
}

// shorter are the records with texts of about limit bytes at most, as a history
// that ends with the summary and keeps them all.
func shorter(summary *claybot.Record, records []claybot.Record, limit int) []claybot.Record {
	cut := make([]claybot.Record, 0, len(records)+1)
	for i, r := range records {
		most := limit
		if i >= len(records)-fresh {
			most = min(limit*worthOfFresh, longestCut)
		}
		cut = append(cut, shorterRecord(r, most))
	}
	if summary != nil {
		s := shorterRecord(*summary, limit)
		s.Keep = len(cut)
		cut = append(cut, s)
	}
	return cut
}

func shorterRecord(r claybot.Record, limit int) claybot.Record {
	talk := limit
	if r.Type != claybot.RecordTool {
		talk *= worthOfTalk
	}
	where := ""
	if r.Saved != "" {
		where = "; the whole result is in " + r.Saved
	}
	r.Text, r.Quote = shorterText(r.Text, talk, where), shorterText(r.Quote, limit, "")
	r.Files = llm.CutFiles(r.Files, func(s string) string { return shorterText(s, limit, "") })
	if r.Type != claybot.RecordAssistant || len(r.ToolCalls) == 0 {
		return r
	}
	calls := make([]claybot.ToolCall, len(r.ToolCalls))
	for i, c := range r.ToolCalls {
		if len(c.Args) > limit {
			c.Args = shorterArgs(c.Args, limit)
		}
		calls[i] = c
	}
	r.ToolCalls = calls
	return r
}

func shorterText(s string, limit int, where string) string {
	return llm.Cut(s, limit, limit/2, func(left int) string {
		return fmt.Sprintf("[… %d of %d bytes left out%s]", left, len(s), where)
	})
}

// shorterArgs is an object that shows the beginning and the end of arguments
// that are too long.
func shorterArgs(args string, limit int) string {
	for edge := limit; edge >= 64; edge /= 2 {
		b, _ := json.Marshal(map[string]string{"shortened_arguments": shorterText(args, edge, "")}) // strings always marshal
		if len(b) <= 2*limit {
			return string(b)
		}
	}
	return fmt.Sprintf(`{"shortened_arguments":"%d bytes left out"}`, len(args))
}
