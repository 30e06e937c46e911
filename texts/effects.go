package texts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// effects are what people read of the effects of tools, each with what the tools say that have it,
// which is stored: a command may read like the effect of another tool. A text without a value
// leaves out an id that people do not know. What fits an earlier one is not a later one.
var effects = []struct{ said, did, tools string }{
	{"set a reminder for %s", DidRemind, "remind_me"},
	{"canceled a reminder for %s", DidCancelReminder, "cancel_reminder"},
	{"canceled a reminder", DidCancelSomeReminder, "cancel_reminder"},
	{"let the subagent “%s” work", DidTask, "task"},
	{"let several subagents work", DidSpawn, "spawn_and_wait"},
	{"started a subagent", DidStartAgent, "start_subagent"},
	{"asked another agent", DidAskAgent, "ask_agent"},
	{"wrote to another agent", DidTellAgent, "send_agent_message"},
	{"stopped another agent", DidStopAgent, "stop_agent"},
	{"created the task “%s” of the heartbeat", DidAddHeartbeat, "heartbeat_add"},
	{"replaced the task “%s” of the heartbeat", DidReplaceHeartbeat, "heartbeat_add"},
	{"removed the task “%s” of the heartbeat", DidRemoveHeartbeat, "heartbeat_remove"},
	{"ran the heartbeat", DidRunHeartbeat, "heartbeat_run"},
	{"changed the memory of the task", DidChangeMemory, "cron_write_memory"},
	{"created the task “%s”", DidAddTask, "cron_add"},
	{"deleted the task “%s”", DidDeleteTask, "cron_delete"},
	{"ran the task “%s”", DidRunTask, "cron_run"},
	{"changed the task “%s”", DidChangeTask, "cron_update"},
	{"wrote to a running command", DidWriteProcess, "process_input"},
	{"stopped a running command", DidStopProcess, "process_stop"},
	{"started the command %s", DidStart, "shell"},
	{"ran the command %s", DidRun, "shell"},
	{"sent a message to %s", DidSendMessage, "send_message"},
	{"sent the file %s", DidSendFile, "send_file"},
	{"kept the file %s", DidKeepFile, "send_file"},
	{"changed %s files, first %s", DidPatchMany, "apply_patch"},
	{"changed several files, first %s", DidChangeFiles, "write_file,edit_file,apply_patch"},
	{"changed the file %s", DidPatch, "apply_patch"},
	{"changed the file %s", DidEditFile, "edit_file"},
	{"wrote the file %s", DidWriteFile, "write_file"},
	{"deleted the file %s", DidDeleteFile, "apply_patch"},
	{"went back in the browser", DidGoBack, "browser_click"},
	{"clicked %s in the browser", DidClick, "browser_click"},
	{"filled in %s in the browser and sent the form", DidFillAndSend, "browser_type"},
	{"filled in %s in the browser", DidFillIn, "browser_type"},
	{"opened the page %s", DidOpenPage, "browser_open"},
	{"was allowed to use %s", DidGainPermission, "request_permission"},
}

// maxEffect is the longest value of an effect.
const maxEffect = 100

// Effect is what a call did, in the words of people. A tool that says nothing of a kind that is
// known of it is shown in its own words, or by what it does.
func (v Voice) Effect(u claybot.Undo) string {
	for _, e := range effects {
		values, ok := valuesOf(u.What, e.did)
		if !ok || !slices.Contains(strings.Split(e.tools, ","), u.Tool) {
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
