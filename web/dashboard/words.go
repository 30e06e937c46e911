package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// This file is the catalogue of the texts that the Go code of the page shows. Texts
// of the markup stand in the templates, those of scripts in assets/words.js.

// What a toast says after an action.
const (
	doneApproved      = "%s is approved and was notified."
	doneDenied        = "Request denied."
	doneAllowed       = "%s has access now."
	doneRevoked       = "Access removed. Messages from there are refused from now on."
	doneReset         = "New conversation started."
	doneDeleted       = "Agent deleted. Its files are in the quarantine."
	doneNothingRan    = "Nothing was running."
	doneStopping      = "Stopping %s."
	doneDropped       = "Dropped %s."
	doneExtended      = "Extended. %s left of %s."
	doneRetried       = "Sending again."
	doneGivenUp       = "Dropped. The message will not be sent."
	doneSaved         = "Saved. The change applies from now on."
	doneNoteSaved     = "Saved. Agents read the note from now on."
	doneNoteDeleted   = "Deleted. Earlier versions are kept."
	doneNoteReverted  = "Reverted."
	doneAnswered      = "Answered. The run continues."
	doneOnce          = "Approved. The run continues."
	doneEdited        = "Approved with your arguments. The run continues."
	doneSession       = "Approved until the next reset."
	doneAlways        = "Always approved. Remove this in the agent's settings."
	doneRefused       = "Denied. The run continues without it."
	doneNeedsMore     = "Approved. The run waits for %s from other people."
	doneEnded         = "The run has already ended."
	doneCanceling     = "Canceling the run."
	doneUndoing       = "Undoing, newest first."
	doneTask          = "Task created."
	doneUnchanged     = "Nothing changed."
	doneRuns          = "“%s” runs now."
	doneOn            = "“%s” is on."
	doneOff           = "“%s” is off."
	doneRemoved       = "“%s” is removed; its folder is in cron/.done."
	doneSkill         = "Allowed in this version. Any change disables it."
	doneForbidden     = "Agents can no longer use it."
	doneAccepted      = "Accepted. Agents can use it now."
	doneWorkspace     = "Workspace removed. Its files are kept for the next one."
	doneConfig        = "Applied."
	doneConfigDoubt   = "Saved in the file."
	doneConfigRestart = "Saved. These take effect with a restart: %s."
	doneWorkspaceAll  = "Workspace and files removed."
	doneFlow          = "Started."
)

// Why a request is refused, and what to do about it.
var (
	errAgentType     = bad("Unknown agent type.", "Choose one from the list.")
	errRunState      = bad("Unknown run state.", "Choose one from the list.")
	errNoMessage     = bad("No message selected.", "Choose one, or drop all.")
	errTaken         = refused(http.StatusConflict, "Nothing was dropped: a run has already taken the messages.", "")
	errNoBudgets     = refused(http.StatusNotFound, "No budgets are configured.", "Add some to the configuration.")
	errNoBudget      = bad("The form does not name a budget.", "Reload the page.")
	errAmount        = bad("Enter an amount above 0.", "For example 5 or 2.50.")
	errTooMuch       = bad("The amount is too large.", "Enter less, or change the configuration.")
	errTokens        = bad("Enter a whole number of tokens, at most 10^12.", "")
	errUnit          = bad("Unknown unit.", "Reload the page.")
	errOtherUnit     = refused(http.StatusConflict, "The unit of this budget has changed.", "Reload the page.")
	errCode          = gone("No such code; codes expire after an hour.", "Ask the user to send another message.")
	errNoSubject     = bad("Enter a connector and an ID.", "")
	errNoGrant       = gone("No user or channel with that ID has access.", "It may already have been removed.")
	errPicture       = refused(http.StatusUnsupportedMediaType, "That file is not an image.", "Download it in the chat.")
	errNoteNamed     = bad("The address does not name a note.", "Open it from a list.")
	errNotePath      = bad("Enter a path for the note.", "For example people/birthdays.md.")
	errVersion       = bad("Unknown version.", "Choose one from the list.")
	errAlways        = refused(http.StatusForbidden, "Approving for good changes the agent's settings, which needs the scope admin.", "Approve it once.")
	errNoArgs        = bad("The arguments are empty.", "Enter a JSON object, or approve the action unchanged.")
	errReason        = bad("The reason is too long.", fmt.Sprintf("Use at most %d characters.", reasonRunes))
	errVerdict       = bad("Unknown verdict.", "Approve or deny.")
	errForm          = bad("The form could not be read.", "Send less.")
	errPage          = gone("No such page.", "Check the address.")
	errBefore        = bad("before must be the number of an event.", "")
	errAfter         = bad("after must be the number of an event.", "")
	errKind          = bad("Choose how the task repeats.", "")
	errWhen          = bad("Enter when the task runs.", "For example 0 9 * * 1-5 as a schedule, or 90m as an interval.")
	errRetries       = bad("The number of retries must be a whole number.", "")
	errTasksOff      = problem(http.StatusNotFound, "off", "Tasks are off.", "Enable cron in the configuration.")
	errHeartbeatsOff = problem(http.StatusNotFound, "off", "The heartbeat is off.", "Enable it in the configuration.")
	errNoTask        = gone("No such task.", "It may have been removed. Schedule lists all tasks.")
	errNoTools       = refused(http.StatusNotFound, "Tools are not available on this daemon.", "")
	errSkillHash     = bad("The form does not say which content you saw.", "Reload the page.")
	errServerTool    = bad("The form does not name a tool.", "Reload the page.")
	errServerHash    = bad("The form does not say which changes you saw.", "Reload the page.")
	errWorkspace     = bad("The form does not name a workspace.", "Reload the page.")
	errNoRoom        = gone("No such workspace.", "It may already have been removed.")
	errNoFlow        = gone("No such workflow.", "Workflows lists all workflows.")
	errFlowRun       = gone("That run is not one of this workflow.", "Choose one from the list.")
	errFlowVersion   = gone("The version of the workflow with which the run began is not kept.", "The page of the run shows what happened.")
	errFlowText      = bad("The text is too long.", fmt.Sprintf("Use at most %s characters.", grouped(flowTextMost)))
	errFlowPayload   = bad("The payload is too long.", fmt.Sprintf("Use at most %s bytes.", grouped(flowPayloadMost)))
	errInternal      = problem(http.StatusInternalServerError, "internal", "Request failed; see the log.", "Try again in a moment.")
	errStopping      = problem(http.StatusServiceUnavailable, "ending", "claybot is shutting down.", "Try again in a moment.")
)

// Sentences with values, and what the page says about the installation.
const (
	anotherApproval = "Already answered; the action now waits for another approval as question %s."
	lookAgain       = "Reload to see the current state."
	taskUnreadable  = "The task cannot be read: %s"
	taskMend        = "Fix the file %s; claybot reads it again at once."
	tasksOff        = "Tasks are off: cron is not enabled in the configuration."
	heartbeatsOff   = "The heartbeat is off: it is not enabled in the configuration."
	clipped         = "\n… truncated: %s more bytes are in the agent's history."
	nothingChanged  = "Nothing was changed."
	badPayload      = "The payload is not valid JSON: %s."
	mendPayload     = "Correct it, or leave it empty."
	needsNumber     = "must be a whole number; leave it empty to use the profile's value."
	needsTool       = "choose at least one, or use the tools of the profile."

	healthUnwell      = "claybot takes less work: %s."
	healthParkedFull  = "The parking table is full: further messages wait at their source."
	healthCheck       = "Check of the %s: %s"
	healthFaulty      = "agent is unavailable; see the log."
	healthFaultyMany  = "agents are unavailable; see the log."
	healthParked      = "message is parked until its agent is available."
	healthParkedMany  = "messages are parked until their agents are available."
	healthUnclean     = "claybot crashed%s and resumes its runs a few at a time; %s waiting."
	healthOften       = " %d times in a row"
	healthDisk        = "The disk is almost full."
	healthStopped     = "connector is off and needs action."
	healthStoppedMany = "connectors are off and need action."
	healthModel       = "The model does not respond."
	healthSetting     = "A setting is invalid, and what it configures is off."
	healthFailing     = "connector has failed and retries."
	healthFailingMany = "connectors have failed and retry."
	healthNoModel     = "No model is configured."
	healthPartly      = "connector works only partly."
	healthPartlyMany  = "connectors work only partly."
	healthServer      = "MCP server is down: agents work without its tools."
	healthServers     = "MCP servers are down: agents work without their tools."
	healthRelay       = "relay has failed and retries."
	healthRelays      = "relays have failed and retry."
	healthPart        = "part needs attention; see below."
	healthParts       = "parts need attention; see below."
	healthHalted      = "part is stopped by an operator; see below."
	healthHaltedMany  = "parts are stopped by an operator; see below."
	healthLost        = "message could not be delivered."
	healthLostMany    = "messages could not be delivered."
	healthUntried     = "No problems found; the model has not been used yet."
	healthGood        = "All systems are working."

	membersTwice    = "Several members are named %s: give each its own node.name."
	membersLeases   = "Members have different leases: set the same node.lease on all."
	membersVersions = "Members run different versions: finish the upgrade."
	membersClock    = "The clock of %s is off: synchronize it with NTP."
	membersNone     = "No live members: the lease of this one is not being renewed."
)

var accessModes = map[people.AccessMode]string{
	people.AccessOpen:      "Anyone can send messages: access is open in the configuration.",
	people.AccessAllowlist: "Messages from unknown users are silently rejected: access is an allow list in the configuration. Allow users by ID below.",
	people.AccessPairing:   "Unknown users who send a message get a code and appear here.",
}

// A mark is a state for people: a colour class (good, busy, warn, bad, calm) and words.
type mark struct{ Tone, Words string }

var connectorMarks = map[string]mark{
	connectors.StateLive: {"good", "connected"}, connectors.StateStarting: {"busy", "starting"}, connectors.StateFailing: {"warn", "failed, retrying"},
	connectors.StateStopped: {"bad", "off, needs action"}, connectors.StateStandby: {"calm", "standby"},
	connectors.StateOff: {"calm", "stopped by an operator"},
}

var serverMarks = map[string]mark{
	"starting": {"busy", "starting"}, "waiting": {"warn", "failed, retrying"}, "refused": {"warn", "invalid settings"}, "stopped": {"calm", "stopped by an operator"},
}

var nodeMarks = map[string]mark{
	nodes.Running: {"good", "running"}, nodes.Waiting: {"busy", "waiting"}, nodes.Failed: {"warn", "failed, retrying"}, nodes.Off: {"bad", "off, needs action"}, nodes.Stopped: {"calm", "stopped by an operator"},
}

// flowMarks are the states of the nodes of a flow; empty: a run has not come there.
var flowMarks = map[string]mark{
	runs.NodeRunning: {"busy", "running"}, runs.NodeRetrying: {"warn", "retrying"}, runs.NodeWaiting: {"warn", "waiting"}, runs.NodeDone: {"good", "done"},
	runs.NodeFailed: {"bad", "failed"}, runs.NodeStopped: {"calm", "cut off"}, "": {"calm", "not entered"},
}

var memberMarks = map[storage.MemberState]mark{
	storage.MemberLive: {"good", "live"}, storage.MemberDraining: {"busy", "draining"}, storage.MemberGone: {"calm", "stopped"}, storage.MemberLost: {"bad", "lost"},
}

var sendMarks = map[claybot.SendState]mark{
	claybot.SendWaiting: {"busy", "pending"}, claybot.SendAttempted: {"busy", "sending"}, claybot.SendSent: {"good", "sent"},
	claybot.SendAmbiguous: {"warn", "ambiguous"}, claybot.SendFailed: {"bad", "failed"},
}

var firingMarks = map[string]mark{
	"waiting": {"busy", "waiting to start"}, string(claybot.RunPending): {"busy", "running"}, string(claybot.RunRunning): {"busy", "running"},
	string(claybot.RunAwaiting): {"busy", "waiting for an answer"}, string(claybot.RunSucceeded): {"good", "succeeded"},
	string(claybot.RunFailed): {"bad", "failed"}, string(claybot.RunCanceled): {"calm", "canceled"},
}

// markOf is how the state of v is shown.
func markOf(v any) mark {
	switch v := v.(type) {
	case overview.ConnectorStatus:
		switch {
		case v.Held != "":
			return mark{"bad", "not receiving"}
		case v.State == connectors.StateLive && v.Err != "":
			return mark{"warn", "partly working"}
		}
		return cmp.Or(connectorMarks[v.State], mark{"calm", v.State})
	case runs.SinkHealth:
		switch {
		case v.Error != "":
			return mark{"warn", "failed, retrying"}
		case v.Stopped != "":
			return nodeMarks[nodes.Stopped]
		case v.Standby:
			return mark{"calm", "sent by another member"}
		case v.Backlog > 0:
			return mark{"busy", "catching up"}
		case v.Success == 0:
			return mark{"calm", "no events yet"}
		}
		return mark{"good", "working"}
	case overview.ServerStatus:
		switch {
		case v.OK:
			return mark{"good", "connected"}
		case v.State == "starting" && v.Err != "": // it is tried again
			return serverMarks["waiting"]
		case v.State == "login":
			return mark{"warn", "needs a login: claybot mcp login " + v.Name}
		}
		return cmp.Or(serverMarks[v.State], mark{"warn", v.State})
	case overview.ModelStatus:
		switch {
		case v.Err != "":
			return mark{"bad", nodeMarks[nodes.Failed].Words}
		case v.Name == "":
			return mark{"warn", "not configured"}
		case v.LastOK.IsZero():
			return mark{"calm", "not used yet"}
		}
		return mark{"good", "responding"}
	case *overview.DiskStatus: // as a template has it
		return markOf(*v)
	case overview.DiskStatus:
		switch {
		case v.Full():
			return mark{"bad", "almost full: free up space, or messages cannot be stored"}
		case v.NearlyFull():
			return mark{"warn", "low on space"}
		}
		return mark{"good", "enough space"}
	}
	return markOfWork(v)
}

// markOfWork is markOf for members, outgoing messages and runs of tasks.
func markOfWork(v any) mark {
	switch v := v.(type) {
	case storage.Member:
		return cmp.Or(memberMarks[v.State], mark{"calm", string(v.State)})
	case claybot.Outgoing:
		if v.State == claybot.SendWaiting && v.Attempts > 0 {
			return mark{"busy", "waiting to retry"}
		}
		return cmp.Or(sendMarks[v.State], mark{"busy", string(v.State)})
	case connectors.Firing:
		if v.State == "skipped" {
			return mark{"calm", "skipped: " + skipWords(v.Reason)}
		}
		return cmp.Or(firingMarks[v.State], mark{"calm", v.State})
	}
	return mark{"calm", fmt.Sprint(v)}
}

// words names a state, a type or a reason.
func words(state any) string {
	s := fmt.Sprint(state)
	return cmp.Or(stateWords[s], strings.ToLower(strings.ReplaceAll(s, "_", " ")))
}

var stateWords = map[string]string{
	"PENDING": "waiting to start", "RUNNING": "running", "AWAITING": "waiting for an answer",
	"SUCCEEDED": "done", "FAILED": "failed", "CANCELED": "canceled",
	"user": "user", "cron": "cron task", "heartbeat": "heartbeat", "subagent": "subagent",
	"missing_info": "an answer", "approval": "an approval", "children": "subagents", "budget": "its budget", "time": "a time", "callback": "a call of a program", "rate": "its rate limit",
	"injectAfterTools": "inject after the tools", "wait": "wait for the end",
	"allTogether": "all together", "oneByOne": "one by one",
}

// tone is the colour class of a state.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "SUCCEEDED", "ok", "sent", "live", "ran", "allowed", "ready":
		return "good"
	case "FAILED", "failed", "stopped", "broken":
		return "bad"
	case "RUNNING", "running", "attempted", "starting":
		return "busy"
	case "AWAITING", "ambiguous", "failing", "PENDING", "waiting", "new", "changed":
		return "warn"
	}
	return "calm"
}

var outgoingKinds = map[claybot.OutgoingKind]string{
	claybot.OutgoingAnswer: "reply", claybot.OutgoingNotice: "notice", claybot.OutgoingCommand: "answer to a command",
	claybot.OutgoingPairing: "pairing code", claybot.OutgoingFile: "file",
}

// skipWords says why something did not run. Reasons that the store writes with a
// count, such as "missed (3)", keep it.
func skipWords(reason string) string {
	name, rest, _ := strings.Cut(reason, " ")
	if text := skips[name]; text != "" {
		return strings.TrimSpace(text + " " + rest)
	}
	return cmp.Or(reason, "no reason recorded")
}

var skips = map[string]string{
	"missed":         "claybot was not running at that time",
	"flow_full":      "the workflow had as many unfinished runs as it may have",
	"overlap":        "the previous run was still active",
	"gate":           "the gate command refused",
	"command":        "it was a command, which claybot answers itself",
	"reset":          "the conversation was reset first",
	"inbox_full":     "too many messages were waiting",
	"flow_busy":      "its workflow was still at work",
	"flow_newer":     "a newer message took its place",
	"run_ended":      "the run that it was for had ended",
	"damaged":        "the files of its agent cannot be read",
	"stopped":        "it was stopped before it started",
	"canceled":       "it was canceled before it started",
	"operator":       "an operator dropped it",
	"agent_deleted":  "its agent was deleted",
	"token_rejected": "the platform rejected the connector's token",
	"revoked":        "the sender's access was revoked",
	"edit":           "it changed a message that waited",
	"deletion":       "it deleted a message",
	"late":           "it came too late to change its message",
	"deleted":        "its sender deleted it first",
}

// engines says what the engines do.
var engines = map[string]string{
	claybot.EngineReact: "acts step by step", claybot.EnginePlan: "plans, asks for approval, then acts", claybot.EngineExplore: "explores an application",
	claybot.EngineUndo: "undoes a run",
}

// planModes says what the modes of a policy mean.
var planModes = map[string]string{
	"preview": "plan only, nothing runs", "approve": "risky steps need approval", "auto": "runs within its limits",
}

// fieldLabels are the labels of the settings form.
var fieldLabels = map[string]string{
	"model": "Model", "prompt": "System prompt", "maxSteps": "Step limit", "debounceMs": "Debounce",
	"whenBusy": "Message during a run", "processBuffer": "Several waiting messages", "tools": "Tools", "permissions": "Permissions", "engine": "Engine", "approved": "Tools without approval",
}

// The fields of an agent's permissions.
const (
	labelReads  = "Can read only"
	labelWrites = "Can write only"
	labelBegins = "Working directory"
	labelRoutes = "Can write to"
	labelDenied = "Denied tools"

	hintDirs   = "directories of the workspace, separated by commas; empty: all, -: none. The agent then has no shell and no browser."
	hintBegins = "where commands and lists begin; empty: the workspace"
	hintRoutes = "agent IDs and conversations such as telegram:1001; empty: all it reaches, -: only its own chat and subagents"
	hintDenied = "names of tools, separated by commas"
)

// stopWords says why the explorer stopped.
var stopWords = map[string]string{
	"unfinished": "interrupted", "goal": "the goal is reached", "exhausted": "everything was tried", "no_progress": "nothing new was found",
	"iterations": "the iteration limit is reached", "budget": "the budget is spent", "screens": "the screen limit is reached",
	"device": "the application crashed repeatedly", "refused": "the request is not allowed",
}

var undoWords = map[claybot.EventType]string{
	claybot.EventUndoQueued: "Undo queued: ", claybot.EventUndoFinished: "Undone: ", claybot.EventUndoFailed: "Undo failed: ",
}

var messageWords = map[claybot.MessageType]string{
	claybot.MessageUser: "Message", claybot.MessageSystem: "Note", claybot.MessageReset: "Reset", claybot.MessageCancel: "Stop",
	claybot.MessageEdit: "Edit", claybot.MessageDelete: "Deletion",
	claybot.MessageCommand: "Command", claybot.MessageCompact: "Compaction request", claybot.MessageAnswer: "Answer",
}

var systemWords = map[claybot.SystemKind]string{
	claybot.KindTask: "Task for a subagent", claybot.KindFailure: "Failure notice", claybot.KindResult: "Report",
	claybot.KindReminder: "Reminder", claybot.KindCron: "Scheduled task", claybot.KindHeartbeat: "Heartbeat", claybot.KindPushBack: "Answer not taken",
}

var outcomeMarks = map[overview.Outcome]mark{
	overview.OutcomeWaiting: {"busy", "waiting"}, overview.OutcomeWorking: {"busy", "running"}, overview.OutcomePaused: {"busy", "paused"},
	overview.OutcomeHandled: {"calm", "done"}, overview.OutcomeDropped: {"bad", "dropped"},
	overview.OutcomeAnswered: {"good", "answered"}, overview.OutcomeSilent: {"calm", "no reply needed"}, overview.OutcomeSending: {"busy", "sending"},
	overview.OutcomeUncertain: {"warn", "uncertain"}, overview.OutcomeUndelivered: {"bad", "not delivered"},
	overview.OutcomeFailed: {"bad", "failed"}, overview.OutcomeStopped: {"calm", "canceled"},
}

// stepMarks are those of the steps of a plan; a waiting one with a question needs approval.
var stepMarks = map[string]struct{ icon, tone, words string }{
	runs.StepOK: {"check", "good", "done"}, runs.StepFailed: {"warn", "bad", "failed"}, runs.StepSkipped: {"skip", "calm", "skipped"},
	runs.StepWaiting: {"ask", "warn", "waiting"}, runs.StepRunning: {"spark", "busy", "running"}, runs.StepPending: {"todo", "calm", "to do"},
}

var agentTypes = map[claybot.AgentType]string{
	claybot.AgentUser: "chats", claybot.AgentCron: "cron tasks", claybot.AgentHeartbeat: "heartbeat", claybot.AgentSubagent: "subagents",
}

// breakdowns are the columns by which the page can break costs down.
var breakdowns = []struct{ By, Words string }{
	{storage.ByModel, "Model"}, {storage.ByAgent, "Agent"}, {storage.ByOwner, "User"}, {storage.ByChannel, "Channel"}, {storage.ByType, "Agent type"},
}

// unpriced stands where a cost would be, for models without a configured price.
const unpriced = "unknown price"

// An advice is what to do about a message, with a link.
type advice struct{ Text, Label, URL string }

// The advice on messages that no run took, by the reason.
var skipAdvice = map[string]advice{
	"inbox_full":     {"Wait until the agent has caught up, or drop waiting messages, and send it again.", "Open the inbox", "agent"},
	"damaged":        {"Check the agent's files; the log names them.", "Open the agent", "agent"},
	"revoked":        {"The sender's access was removed. Approve the user again if that was a mistake.", "Open Access", "/ui/access"},
	"access_denied":  {"Its sender was denied access. Approve the user if that was a mistake; they have to write again.", "Open Access", "/ui/access"},
	"not_approved":   {"Approve the user and let them write again.", "Open Access", "/ui/access"},
	"token_rejected": {"Give the connector a valid token.", "Open Health", "/ui/health"},
	"reset":          skippedForGood, "stopped": skippedForGood, "canceled": skippedForGood,
	"operator": skippedForGood, "agent_deleted": skippedForGood, "run_ended": skippedForGood,
	"flow_busy": skippedForGood, "flow_newer": skippedForGood,
}

var skippedForGood = advice{Text: "It was dropped for good. The sender can send it again."}

// The advice on failed runs, by the code of the error; runAdvice[""] is for all others.
var runAdvice = map[string]advice{
	runs.CodeModel:     {"Check whether the model responds, then send the message again.", "Open Health", "/ui/health"},
	runs.CodeRefused:   {"The model provider rejected the request: check its API key, account and limits.", "Open Health", "/ui/health"},
	runs.CodeNoModel:   {Text: "Set a model in the configuration; see docs/configuration.md."},
	runs.CodeContext:   {"The conversation is too long for the model: reset the agent, or use a model with a larger context.", "Open the agent", "agent"},
	runs.CodeTooMany:   {"Raise the step limit, or ask for less at once.", "Open the settings", "agent"},
	runs.CodeRepeating: {"The model repeated itself: check its calls, and rephrase the request or use another model.", "Open the run", "run"},
	runs.CodeBadCalls:  {"The model repeated itself: check its calls, and rephrase the request or use another model.", "Open the run", "run"},
	runs.CodeDeadline:  {"The run exceeded its time limit: ask for less at once, or raise the limit in the configuration.", "Open the run", "run"},
	"":                 {"Check the timeline of the run, then send the message again.", "Open the run", "run"},
}

var (
	adviceFault      = advice{"Repair what the log names; claybot continues on its own.", "Open Health", "/ui/health"}
	adviceParked     = advice{"Repair what the log names; claybot retries the message on its own.", "Open Health", "/ui/health"}
	adviceUnapproved = advice{"Approve or deny its sender.", "Open Access", "/ui/access"}
	adviceAnswer     = advice{"Answer its question, or cancel it.", "Open the run", "run"}
	advicePaused     = advice{"Answer the question of the run before it, or cancel that run.", "Open the run", "run"}
	adviceBehind     = advice{"It continues when the run before it has ended. You can view or cancel that run.", "Open the run", "run"}
	adviceLost       = advice{"Fix the cause, then send the reply again.", "Failed deliveries", "/ui/deliveries?show=failed"}
	adviceLate       = advice{"If this takes long, check the connector.", "Open Health", "/ui/health"}
)

// What the pages of the settings say.
const (
	configGeneral      = "general"
	configInvalid      = "not valid, see Health"
	configUnset        = "not set"
	configNoValue      = "Enter a value, or remove the key from the file."
	configNoKey        = "No such setting."
	configNoKeyFix     = "It may have been removed. Choose one from the list."
	configHistoryTitle = "History of the settings"
	configHidden       = "(secret)" // what the configuration shows for a secret
	configRefused      = "The value is not valid."
	configWaits        = "Waits for a restart of claybot; until then %s is in force."
	configWins         = "%s is set as well, and wins over the file."
)
