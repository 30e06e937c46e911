package texts

import "github.com/claybot/claybot/connectors"

// TaskPaused says that a scheduled task is paused, because its output does not arrive.
func (v Voice) TaskPaused(name string) string {
	return v.Say("The scheduled task “%s” is paused, because I couldn't deliver the output of its last two runs. When that works again, change the task or enable it.", connectors.Literal(name, 80))
}

// TaskRests says that a scheduled task is paused, because its route is dead.
func (v Voice) TaskRests(name, connector string) string {
	return v.Say("The scheduled task “%s” is paused, and so are all others that answer there: I can't write to its conversation on %s any more. It resumes when you write to me there.",
		connectors.Literal(name, 80), connectors.Capital(connector))
}

// HeartbeatPaused says why the heartbeat is paused: no user wrote during some ticks or, if there
// are none, the model refused to work.
func (v Voice) HeartbeatPaused(ticks int) string {
	if ticks == 0 {
		return v.Say("The heartbeat is paused because the model refused to work, which is mostly about the account or its bill. It resumes when you write.")
	}
	return v.Count(int64(ticks), "The heartbeat is paused because you did not write during %d tick. It resumes when you write.|The heartbeat is paused because you did not write during %d ticks. It resumes when you write.")
}
