package main

import "slices"

// builtin are the names of all tools of claybot itself, present or not: no server
// takes the name of one that an agent gets later.
var builtin = []string{
	"apply_patch", "ask_agent", "ask_user", "browser_click", "browser_close", "browser_open", "browser_read", "browser_screenshot", "browser_type",
	"cancel_reminder", "cron_add", "cron_delete", "cron_list", "cron_read_memory", "cron_restore_memory", "cron_run", "cron_update", "cron_write_memory",
	"current_time", "edit_file", "fetch_url", "files_restore", "find_tools", "finish", "glob", "grep", "heartbeat_add", "heartbeat_list", "heartbeat_remove", "heartbeat_run", "http_keyed", "http_once", "http_read",
	"list_agents", "list_files", "list_reminders", "ls",
	"memory_append", "memory_delete", "memory_list", "memory_read", "memory_search", "memory_update", "memory_write",
	"process_input", "process_list", "process_log", "process_stop",
	"read_agent_history", "read_chat", "read_file", "read_skill_file", "read_todos", "remind_me", "remove_file", "request_permission", "search_files", "search_history", "send_agent_message", "send_file",
	"send_message", "set_reaction", "shell", "spawn_and_wait", "start_subagent", "stop_agent", "task", "use_skill", "wait", "web_search", "write_file", "write_todos",
}

// reserved reports whether a name is that of a tool of claybot itself.
func reserved(name string) bool { return slices.Contains(builtin, name) }
