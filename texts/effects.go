package texts

import (
	"cmp"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// effects are what people read of the effects of tools, each with what the tool says, which is
// stored. A text without a value leaves out an id that people do not know. What fits an earlier
// one is not a later one.
var effects = []struct{ said, did string }{
	{"set a reminder for %s", DidRemind},
	{"canceled a reminder for %s", DidCancelReminder},
	{"canceled a reminder", DidCancelSomeReminder},
	{"let the subagent “%s” work", DidTask},
	{"let several subagents work", DidSpawn},
	{"started a subagent", DidStartAgent},
	{"asked another agent", DidAskAgent},
	{"wrote to another agent", DidTellAgent},
	{"stopped another agent", DidStopAgent},
	{"created the task “%s” of the heartbeat", DidAddHeartbeat},
	{"replaced the task “%s” of the heartbeat", DidReplaceHeartbeat},
	{"removed the task “%s” of the heartbeat", DidRemoveHeartbeat},
	{"ran the heartbeat", DidRunHeartbeat},
	{"changed the memory of the task", DidChangeMemory},
	{"created the task “%s”", DidAddTask},
	{"deleted the task “%s”", DidDeleteTask},
	{"ran the task “%s”", DidRunTask},
	{"changed the task “%s”", DidChangeTask},
	{"wrote to a running command", DidWriteProcess},
	{"stopped a running command", DidStopProcess},
	{"started the command %s", DidStart},
	{"ran the command %s", DidRun},
	{"sent a message to %s", DidSendMessage},
	{"sent the file %s", DidSendFile},
	{"kept the file %s", DidKeepFile},
	{"changed %s files, first %s", DidPatchMany},
	{"changed several files, first %s", DidChangeFiles},
	{"changed the file %s", DidPatch},
	{"changed the file %s", DidEditFile},
	{"wrote the file %s", DidWriteFile},
	{"deleted the file %s", DidDeleteFile},
	{"went back in the browser", DidGoBack},
	{"clicked %s in the browser", DidClick},
	{"filled in %s in the browser and sent the form", DidFillAndSend},
	{"filled in %s in the browser", DidFillIn},
	{"opened the page %s", DidOpenPage},
	{"was allowed to use %s", DidGainPermission},
}

// maxEffect is the longest value of an effect.
const maxEffect = 100

// Effect is what a call did, in the words of people. A tool that says nothing of a kind that is
// known here is shown in its own words, or by what it does.
func (v Voice) Effect(u claybot.Undo) string {
	for _, e := range effects {
		values, ok := valuesOf(u.What, e.did)
		if !ok {
			continue
		}
		if !strings.Contains(e.said, "%s") {
			return v.In(e.said)
		}
		for i, x := range values {
			values[i] = v.effectValue(e.did, x.(string))
		}
		return v.Say(e.said, values...)
	}
	return cmp.Or(connectors.Literal(u.What, maxEffect), v.Step(u.Tool))
}

// effectValue is a value of an effect: a time as people tell it, the name of a chat, or as it is.
func (v Voice) effectValue(did, value string) string {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return v.Moment(claybot.At(at))
	}
	if did == DidSendMessage && v.Name != nil {
		value = cmp.Or(v.Name(value), value)
	}
	return connectors.Literal(value, maxEffect)
}
