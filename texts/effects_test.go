package texts

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// People read effects in their words, with times in their zone and without ids and names of tools.
func TestEffects(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"slack/C1": "#general"}
	for what, want := range map[string][2]string{
		"made a reminder for 2001-01-05T18:30:00Z":          {"set a reminder for Friday, 5 January 2001 at 19:30", "eine Erinnerung gestellt: Freitag, 5. Januar 2001 um 19:30 Uhr"},
		"canceled a reminder for 2001-01-05T18:30:00Z":      {"canceled a reminder for Friday, 5 January 2001 at 19:30", "eine Erinnerung gelöscht: Freitag, 5. Januar 2001 um 19:30 Uhr"},
		"canceled a reminder":                               {"canceled a reminder", "eine Erinnerung gelöscht"},
		"let 3 subagents work":                              {"let several subagents work", "mehrere Subagenten beauftragt"},
		"sent a message to agent cmwqbbbb":                  {"wrote to another agent", "einem anderen Agenten geschrieben"},
		"sent a message to slack/C1":                        {"sent a message to #general", "eine Nachricht an #general geschickt"},
		"sent a message to slack/C2":                        {"sent a message to slack/C2", "eine Nachricht an slack/C2 geschickt"},
		"created the task tidy of the heartbeat":            {"created the task “tidy” of the heartbeat", "die Aufgabe „tidy“ des Heartbeats angelegt"},
		"created the task daily":                            {"created the task “daily”", "die Aufgabe „daily“ angelegt"},
		"ran make all":                                      {"ran the command make all", "den Befehl make all ausgeführt"},
		"stopped the process p3":                            {"stopped a running command", "einen laufenden Befehl angehalten"},
		"patched 3 files, first a.go":                       {"changed 3 files, first a.go", "3 Dateien geändert, zuerst a.go"},
		`filled in "Name" in the browser and sent the form`: {`filled in "Name" in the browser and sent the form`, `im Browser "Name" ausgefüllt und das Formular abgeschickt`},
		"booked a room":                                     {"booked a room", "booked a room"}, // of a tool that is not claybot's
		"":                                                  {"writing a file", "schreibe eine Datei"},
	} {
		for i, language := range []Language{English, German} {
			v := Voice{Language: language, Zone: berlin, Own: true, Name: func(id string) string { return names[id] }}
			got := v.Effect(claybot.Undo{Step: "call-1", Tool: "write_file", What: what})
			if i == 1 && what == "" { // the words of a step are those of its status
				want[1] = v.In(want[0])
			}
			if got = strings.ReplaceAll(got, "\\", ""); got != want[i] {
				t.Errorf("%s: %q is %q, want %q", language, what, got, want[i])
			}
		}
	}
}
