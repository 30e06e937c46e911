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
	type effect struct{ tool, what string }
	for did, want := range map[effect][2]string{
		{"remind_me", "made a reminder for 2001-01-05T18:30:00Z"}:             {"set a reminder for Friday, 5 January 2001 at 19:30", "eine Erinnerung gestellt: Freitag, 5. Januar 2001 um 19:30 Uhr"},
		{"cancel_reminder", "canceled a reminder for 2001-01-05T18:30:00Z"}:   {"canceled a reminder for Friday, 5 January 2001 at 19:30", "eine Erinnerung gelöscht: Freitag, 5. Januar 2001 um 19:30 Uhr"},
		{"cancel_reminder", "canceled a reminder"}:                            {"canceled a reminder", "eine Erinnerung gelöscht"},
		{"spawn_and_wait", "let 3 subagents work"}:                            {"let several subagents work", "mehrere Subagenten beauftragt"},
		{"send_agent_message", "sent a message to agent cmwqbbbb"}:            {"wrote to another agent", "einem anderen Agenten geschrieben"},
		{"send_message", "sent a message to slack/C1"}:                        {"sent a message to #general", "eine Nachricht an #general geschickt"},
		{"send_message", "sent a message to slack/C2"}:                        {"sent a message to slack/C2", "eine Nachricht an slack/C2 geschickt"},
		{"heartbeat_add", "created the task tidy of the heartbeat"}:           {"created the task “tidy” of the heartbeat", "die Aufgabe „tidy“ des Heartbeats angelegt"},
		{"cron_add", "created the task daily"}:                                {"created the task “daily”", "die Aufgabe „daily“ angelegt"},
		{"shell", "ran make all"}:                                             {"ran the command make all", "den Befehl make all ausgeführt"},
		{"process_stop", "stopped the process p3"}:                            {"stopped a running command", "einen laufenden Befehl angehalten"},
		{"apply_patch", "patched 3 files, first a.go"}:                        {"changed 3 files, first a.go", "3 Dateien geändert, zuerst a.go"},
		{"browser_type", `filled in "Name" in the browser and sent the form`}: {`filled in "Name" in the browser and sent the form`, `im Browser "Name" ausgefüllt und das Formular abgeschickt`},
		{"book_room", "booked a room"}:                                        {"booked a room", "booked a room"}, // of a tool that is not claybot's
		{"write_file", ""}:                                                    {"writing a file", "schreibe eine Datei"},
		// What reads like the effect of another tool is not taken for it.
		{"shell", "ran the heartbeat"}:                         {"ran the command the heartbeat", "den Befehl the heartbeat ausgeführt"},
		{"shell", "started the agent $(x)"}:                    {"started the command the agent $(x)", "den Befehl the agent $(x) gestartet"},
		{"heartbeat_run", "ran the heartbeat"}:                 {"ran the heartbeat", "den Heartbeat ausgeführt"},
		{"start_subagent", "started the agent cmwqbbbb"}:       {"started a subagent", "einen Subagenten gestartet"},
		{"cron_add", "created the task tidy of the heartbeat"}: {"created the task “tidy of the heartbeat”", "die Aufgabe „tidy of the heartbeat“ angelegt"},
		{"mail_send", "sent a message to slack/C1"}:            {"sent a message to slack/C1", "sent a message to slack/C1"},
	} {
		for i, language := range []Language{English, German} {
			v := Voice{Language: language, Zone: berlin, Own: true, Name: func(id string) string { return names[id] }}
			got := v.Effect(claybot.Undo{Step: "call-1", Tool: did.tool, What: did.what})
			if i == 1 && did.what == "" { // the words of a step are those of its status
				want[1] = v.In(want[0])
			}
			if got = strings.ReplaceAll(got, "\\", ""); got != want[i] {
				t.Errorf("%s: %+v is %q, want %q", language, did, got, want[i])
			}
		}
	}
}

// What may be read later names dates in place of today and tomorrow.
func TestLasting(t *testing.T) {
	at := time.Now().UTC().Add(time.Hour)
	for language, month := range map[Language][12]string{English: englishClock.months, German: germanClock.months} {
		v := Voice{Language: language}.Lasting()
		for _, text := range []string{v.Moment(claybot.At(at)), v.When(claybot.At(at)), v.Effect(claybot.Undo{Tool: "remind_me", What: "made a reminder for " + at.Format(time.RFC3339)})} {
			if !strings.Contains(text, month[at.Month()-1]) {
				t.Errorf("%s: %s", language, text)
			}
		}
	}
}
