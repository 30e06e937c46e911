package main

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// acts are words of the acts of tools that change something, in English and German: an approval
// says them, also where the arguments do not.
var acts = map[string][2]string{
	"apply_patch": {"deleting", "löschen"}, "edit_file": {"replacing", "ersetzen"}, "write_file": {"replacing", "ersetzen"}, "files_restore": {"restoring", "wiederherstellen"},
	"memory_write": {"replacing", "ersetzen"}, "memory_append": {"appending", "anhängen"}, "memory_update": {"replacing a part", "Teil"}, "memory_delete": {"deleting", "löschen"},
	"heartbeat_add": {"creating or replacing", "anlegen oder ersetzen"}, "heartbeat_remove": {"removing", "entfernen"}, "heartbeat_run": {"starting", "starten"},
	"cron_add": {"creating", "anlegen"}, "cron_update": {"changing", "ändern"}, "cron_delete": {"deleting", "löschen"}, "cron_run": {"starting", "starten"},
	"cron_write_memory": {"replacing", "ersetzen"}, "cron_restore_memory": {"restoring", "wiederherstellen"},
	"task": {"starting", "starten"}, "spawn_and_wait": {"starting", "starten"}, "start_subagent": {"starting", "starten"}, "stop_agent": {"stopping", "anhalten"},
	"ask_agent": {"sending", "schicken"}, "send_agent_message": {"sending", "schicken"}, "send_message": {"sending", "schicken"}, "send_file": {"sending", "schicken"},
	"process_input": {"writing", "eingeben"}, "process_stop": {"stopping", "beenden"}, "shell": {"running", "ausführen"},
	"remind_me": {"setting", "einrichten"}, "cancel_reminder": {"canceling", "löschen"}, "write_todos": {"replacing", "ersetzen"}, "set_reaction": {"reacting", "reagieren"},
	"browser_open": {"opening", "öffnen"}, "browser_click": {"clicking", "klicken"}, "browser_type": {"filling in", "ausfüllen"}, "browser_close": {"closing", "schließen"},
	"request_permission": {"permission", "Berechtigung"}, "ask_user": {"asking", "stellen"}, "fetch_url": {"fetching", "abrufen"}, "web_search": {"searching", "suchen"},
	"finish":    {"ending", "beenden"},
	"http_read": {"reading", "lesen"}, "http_keyed": {"sending", "senden"}, "http_once": {"sending", "senden"},
}

// Each tool of claybot has words of its own for its approvals, which say the act: no other tool
// has the same. Tools of others have none, whatever their names are.
func TestActions(t *testing.T) {
	for i, language := range texts.All() {
		v := texts.Voice{Language: language}
		said := make(map[string]string)
		for _, name := range builtin {
			if name == "remove_file" { // reserved only
				continue
			}
			spec := tools.Spec{Tool: llm.Tool{Name: name}}
			doing := v.Doing(spec)
			if other, twice := said[doing]; doing == "" || twice {
				t.Errorf("%s: %s is %q, and so is %q", language, name, doing, other)
			}
			said[doing] = name
			if act := acts[name][i]; !strings.Contains(doing, act) {
				t.Errorf("%s: %s is %q, which does not say %q", language, name, doing, act)
			}
			if spec.Source = "mcp:web"; v.Doing(spec) != "" {
				t.Errorf("%s of a server is said to be %q", name, v.Doing(spec))
			}
		}
	}
}
