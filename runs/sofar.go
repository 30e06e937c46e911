package runs

import (
	"iter"

	"github.com/claybot/claybot"
)

// soFarEvents is how many events of a run are read for what it has taken; few runs
// have as many.
const soFarEvents = 10_000

// SoFar is what a run has taken up to its last event: the store knows the sum of
// its last pause and of its end alone. Of a run that has not ended, events yields
// those from the first on. Calls of models that failed are counted with the next
// pause or the end.
func SoFar(run claybot.Run, events iter.Seq2[claybot.Event, error]) (claybot.Usage, error) {
	if run.State.Ended() || run.State == claybot.RunAwaiting || run.LastSeq == 0 {
		return run.Usage, nil
	}
	var before, since claybot.Usage // the last pause
	for e, err := range events {
		if err != nil {
			return run.Usage, err
		}
		if e.Seq > run.LastSeq || e.Seq > soFarEvents { // newer than what is known of the run
			break
		}
		switch e.Type {
		case claybot.EventAwaitingInput:
			before, since = run.Usage, claybot.Usage{}
		case claybot.EventToolCalled:
			since.ToolCalls++
		default:
			since = since.Add(tokensOf(e))
		}
	}
	return before.Add(since), nil
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
