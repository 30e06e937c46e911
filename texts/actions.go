package texts

import (
	"cmp"

	"github.com/claybot/claybot/tools"
)

// actions say what each tool of claybot itself will do, for the approvals of its calls: the act
// and what it is done to. No two tools share their words, because the same arguments may mean
// different things to them.
var actions = map[string]string{
	"apply_patch":         "creating, changing, moving or deleting files",
	"ask_agent":           "sending a question to another agent and waiting for the answer",
	"ask_user":            "asking a question in this conversation",
	"browser_click":       "clicking or going back in the browser",
	"browser_close":       "closing the browser, which ends its logins",
	"browser_open":        "opening a page in the browser",
	"browser_read":        "reading the page in the browser",
	"browser_screenshot":  "taking a screenshot of the page in the browser",
	"browser_type":        "filling in a field in the browser",
	"cancel_reminder":     "canceling a reminder",
	"cron_add":            "creating a scheduled task",
	"cron_delete":         "deleting a scheduled task",
	"cron_list":           "listing scheduled tasks",
	"cron_read_memory":    "reading the memory of a scheduled task",
	"cron_restore_memory": "restoring the memory of a scheduled task",
	"cron_run":            "starting a scheduled task now",
	"cron_update":         "changing a scheduled task",
	"cron_write_memory":   "replacing the memory of a scheduled task, or appending to it",
	"current_time":        "reading the date and time",
	"edit_file":           "replacing a part of a file",
	"fetch_url":           "fetching a web page",
	"http_read":           "reading an address of a workflow",
	"http_keyed":          "sending to an address of a workflow, once for each key",
	"http_once":           "sending to an address of a workflow",
	"files_restore":       "restoring the files that a run changed",
	"find_tools":          "searching for tools",
	"finish":              "ending the work on a request",
	"glob":                "finding files by their names",
	"grep":                "searching the lines of files",
	"heartbeat_add":       "creating or replacing a task of the heartbeat",
	"heartbeat_list":      "listing the tasks of the heartbeat",
	"heartbeat_remove":    "removing a task of the heartbeat",
	"heartbeat_run":       "starting tasks of the heartbeat now",
	"list_agents":         "listing other agents",
	"list_files":          "listing the files of the workspace",
	"list_reminders":      "listing reminders",
	"ls":                  "listing a folder",
	"memory_append":       "appending to a note",
	"memory_delete":       "deleting a note",
	"memory_list":         "listing notes",
	"memory_read":         "reading a note",
	"memory_search":       "searching notes",
	"memory_update":       "replacing a part of a note",
	"memory_write":        "writing or replacing a note",
	"process_input":       "writing to a running command",
	"process_list":        "listing running commands",
	"process_log":         "reading the output of a running command",
	"process_stop":        "stopping a running command",
	"read_agent_history":  "reading the conversation of another agent",
	"read_chat":           "reading earlier messages of the chat",
	"read_file":           "reading a file",
	"read_skill_file":     "reading a file of a skill",
	"read_todos":          "reading the list of todos",
	"remind_me":           "setting a reminder",
	"request_permission":  "giving the agent a permission",
	"search_files":        "searching the files of the workspace",
	"search_history":      "searching earlier conversations",
	"send_agent_message":  "sending a message to another agent",
	"send_file":           "sending a file to the chat",
	"send_message":        "sending a message to a chat",
	"set_reaction":        "reacting to a message",
	"shell":               "running a command",
	"spawn_and_wait":      "starting subagents and waiting for them",
	"start_subagent":      "starting a subagent in the background",
	"stop_agent":          "stopping a subagent",
	"task":                "starting a subagent and waiting for its answer",
	"use_skill":           "reading a skill",
	"wait":                "waiting",
	"web_search":          "searching the web",
	"write_file":          "writing or replacing a file",
	"write_todos":         "replacing the list of todos",
}

// Doing says what a call of a tool will do; empty for a tool that is not claybot's own, whose
// name may say anything.
func (v Voice) Doing(tool tools.Spec) string {
	if tool.Source != "" {
		return ""
	}
	return v.action(tool.Name)
}

// DoingBy says what a call of a tool will do, by its name alone; the name where it has no words.
func (v Voice) DoingBy(tool string) string {
	return cmp.Or(v.action(tool), tool)
}

// action is Doing by the name of a tool. A server has no tool with the name of one of claybot.
func (v Voice) action(tool string) string {
	if does, ok := actions[tool]; ok {
		return v.In(does)
	}
	return ""
}
