package texts

import (
	"strings"

	"github.com/claybot/claybot/connectors"
)

// ThinkingStatus is the status of a run that has begun. A platform puts the name of the bot
// before a status.
const ThinkingStatus = "is thinking…"

// Working is the placeholder that an answer replaces.
const Working = "Working…"

// QueuedStatus is the status while a message waits because others have all workers.
const QueuedStatus = "is waiting for others…"

// WorkingStatus is the status of a run that has shown nothing new for a while. It says in
// words what the run waits for: a tool, or the model if tool is empty.
func (v Voice) WorkingStatus(tool string) string {
	return v.Say("is still working: %s…", v.Step(tool))
}

// steps says what a run does while it uses a tool, in few words; see actions for what is approved.
var steps = map[string]string{
	"":                   "waiting for the model",
	"apply_patch":        "editing files",
	"search_history":     "searching earlier conversations",
	"read_chat":          "reading the chat",
	"process_list":       "looking at running commands",
	"process_log":        "reading the output of a command",
	"process_input":      "writing to a command",
	"process_stop":       "stopping a command",
	"memory_list":        "reading my notes",
	"memory_read":        "reading my notes",
	"memory_write":       "writing my notes",
	"memory_append":      "writing my notes",
	"memory_update":      "writing my notes",
	"memory_delete":      "deleting a note",
	"cron_add":           "planning a task",
	"cron_update":        "planning a task",
	"cron_delete":        "deleting a task",
	"cron_list":          "looking at scheduled tasks",
	"cron_run":           "starting a task",
	"remind_me":          "setting a reminder",
	"send_agent_message": "writing to another agent",
	"list_agents":        "looking at other agents",
	"ask_agent":          "waiting for another agent",
	"send_message":       "sending a message",
	"set_reaction":       "reacting to a message",
	"start_subagent":     "starting a subagent",
	"task":               "waiting for a subagent",
	"stop_agent":         "stopping another agent",
	"read_agent_history": "reading what another agent did",
	"cancel_reminder":    "canceling a reminder",
	"list_reminders":     "looking at reminders",
	"heartbeat_add":      "changing the heartbeat",
	"heartbeat_remove":   "changing the heartbeat",
	"heartbeat_run":      "running the heartbeat",
	"request_permission": "getting a permission",
	"read_skill_file":    "reading a skill",
	"browser_click":      "using a web page",
	"browser_open":       "opening a web page",
	"browser_read":       "reading a web page",
	"browser_screenshot": "looking at a web page",
	"browser_type":       "using a web page",
	"edit_file":          "editing a file",
	"fetch_url":          "reading a web page",
	"list_files":         "looking at files",
	"memory_search":      "searching my notes",
	"read_file":          "reading a file",
	"read_todos":         "planning",
	"search_files":       "searching files",
	"send_file":          "sending a file",
	"shell":              "running a command",
	"spawn_and_wait":     "waiting for a subagent",
	"wait":               "waiting",
	"web_search":         "searching the web",
	"write_file":         "writing a file",
	"write_todos":        "planning",
}

// Step says what a run does while it uses a tool, or waits for the model if tool is empty. A
// tool without words of its own is named as people write names.
func (v Voice) Step(tool string) string {
	if step, ok := steps[tool]; ok {
		return v.In(step)
	}
	return v.Say("using %s", strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return ' '
		}
		return r
	}, connectors.OneLine(tool, 64))))
}
