package runs

import (
	"iter"

	"github.com/claybot/claybot"
)

// soFarEvents is how many events of a run, the newest, are read for what it has taken
// since its last pause: each look at a run that works reads them.
const soFarEvents = 2000

// SoFar is what a run has taken up to its last event: the store knows the sum of
// its last pause and of its end alone. Of a run that has not ended, eventsAfter yields
// those behind a sequence number. Of one that has worked for very long without a pause
// the newest part is counted, so it took that much at least. Calls of models that
// failed are counted with the next pause or the end.
func SoFar(run claybot.Run, eventsAfter func(seq int64) iter.Seq2[claybot.Event, error]) (claybot.Usage, error) {
	if run.State.Ended() || run.State == claybot.RunAwaiting || run.LastSeq == 0 {
		return run.Usage, nil
	}
	var since claybot.Usage // the last pause, or the beginning
	for e, err := range eventsAfter(max(0, run.LastSeq-soFarEvents)) {
		if err != nil {
			return run.Usage, err
		}
		if e.Seq > run.LastSeq { // newer than what is known of the run
			break
		}
		switch e.Type {
		case claybot.EventAwaitingInput:
			since = claybot.Usage{}
		case claybot.EventToolCalled:
			since.ToolCalls++
		default:
			since = since.Add(tokensOf(e))
		}
	}
	return run.Usage.Add(since), nil
}

// tokensOf is what the model calls took that an event tells of.
func tokensOf(e claybot.Event) claybot.Usage {
	var took *claybot.Usage
	switch e.Type {
	case claybot.EventAssistantMessage:
		d, _ := factOf[AssistantMessage](e) // one that cannot be read tells of none
		took = d.Tokens
	case claybot.EventContextCompacted:
		d, _ := factOf[ContextCompacted](e)
		took = d.Tokens
	case claybot.EventEdgeTaken:
		d, _ := factOf[EdgeTaken](e)
		took = d.Tokens
	}
	if took == nil {
		return claybot.Usage{}
	}
	return *took
}
