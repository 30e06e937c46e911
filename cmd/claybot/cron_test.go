package main

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
)

const newsTask = `{"name":"News","schedule":"0 9 * * *","timezone":"Europe/Berlin","prompt":"the news","route":"telegram/7","retries":2,"once":true,` +
	`"slug":"news","uid":"u1","enabled":true,"next":["2027-01-31T09:00:00+01:00","2027-02-01T09:00:00+01:00"],` +
	`"last":{"planned":"2027-01-30T08:00:00Z","instant":"2027-01-30T08:00:00Z","state":"SUCCEEDED"}}`

func TestCronCommands(t *testing.T) {
	d := openDesk(t, map[string]string{
		"GET /cron": `{"tasks":[` + newsTask + `,{"name":"Odd","every":"2h","prompt":"x","slug":"odd name","uid":"news","enabled":false,"next":[]}],` +
			`"problems":[{"file":"cron/bad/TASK.md","line":3,"text":"no such\nzone"},{"file":"cron/worse","text":"cannot be read"}]}`,
		"GET /cron/news/ledger": `{"firings":[{"planned":"2027-01-30T08:00:00Z","started":"2027-01-30T08:00:01Z","ended":"2027-01-30T08:00:04Z","instant":"2027-01-30T08:00:00Z","state":"SUCCEEDED","run":"r1","costMicroUSD":1500},` +
			`{"planned":"2027-01-29T08:00:00Z","instant":"manual/k","attempt":2,"state":"skipped","reason":"overlap"}]}`,
		"GET /cron/u1/ledger":    `{"firings":[]}`,
		"POST /cron":             newsTask,
		"PATCH /cron/news":       newsTask,
		"POST /cron/news/run":    newsTask,
		"DELETE /cron/news":      "",
		"PATCH /cron/odd%20name": `{"slug":"odd name","next":[]}`,
	})
	const next = "Next runs:\n  Sun 2027-01-31 09:00:00"
	base := `POST /cron {"name":"News","schedule":"0 9 * * *","prompt":"the news"}`
	d.deals(t, []deal{
		{args: "cron", asks: "GET /cron", says: "news      News  0 9 * * *  Europe/Berlin  2027-01-31 09:00:00  SUCCEEDED "},
		{args: "cron|list", asks: "GET /cron", says: "odd name  Odd   every 2h   -              off                  never\n"},
		{args: "cron", asks: "GET /cron", says: "cron/bad/TASK.md:3: no such zone\ncron/worse: cannot be read\n"},
		{args: "cron|show|news", asks: "GET /cron/news/ledger?limit=10|GET /cron", says: "retries   2\n"},
		{args: "cron|show|news", asks: "GET /cron/news/ledger?limit=10|GET /cron", says: next},
		{args: "cron|show|news", asks: "GET /cron/news/ledger?limit=10|GET /cron", says: "3s    $0.0015  r1   -\n"},
		{args: "cron|show|news", asks: "GET /cron/news/ledger?limit=10|GET /cron", says: " by hand  2    skipped    -                    -     -        -    overlap\n"},
		{args: "cron|show|u1", asks: "GET /cron/u1/ledger?limit=10|GET /cron", says: "slug      news\n"},
		{args: "cron|show|nope", code: 1, asks: "GET /cron/nope/ledger?limit=10", warns: "There is no such thing."},
		{args: "cron|show|..", code: 2, warns: `invalid task slug ".."`},
		{args: "cron|add|--name|News|--schedule|0 9 * * *|the news", asks: base, says: "Saved the task news. " + next},
		{args: "cron|add|--dry-run|--name|News|--schedule|0 9 * * *|the news", asks: base[:len(base)-1] + `,"dry_run":true}`, says: "Nothing saved. " + next},
		{
			args: "cron|add|--name=N|--every=2h|--timezone=UTC|--route=none|--misfire=skip|--once|--retries=3|--description=D|p",
			asks: `POST /cron {"name":"N","description":"D","every":"2h","timezone":"UTC","prompt":"p","misfire":"skip","once":true,"retries":3,"route":"none"}`,
			says: "Saved the task",
		},
		{args: "cron|add|--name|N|--at|2027-01-31T09:00:00Z|p", asks: `POST /cron {"name":"N","at":"2027-01-31T09:00:00Z","prompt":"p"}`, says: "Saved the task"},
		{args: "cron|add|--name|N|p", code: 2, warns: "--schedule"},
		{args: "cron|add|--name|N|--every|1h|--at|x|p", code: 2, warns: "--at"},
		{args: "cron|add|--every|1h|p", code: 2, warns: "--name"},
		{args: "cron|add|--name|N|--every|1h", code: 2, warns: "<prompt>"},
		{args: "cron|add|--name|N|--every|1h|--retries|x|p", code: 2, warns: "retries"},
		{args: "cron|edit|news|--name|New|--retries|0|--no-once", asks: `PATCH /cron/news {"name":"New","once":false,"retries":0}`, says: "Changed the task news. " + next},
		{args: "cron|edit|news|--every|1h", asks: `PATCH /cron/news {"at":"","every":"1h","schedule":""}`, says: "Changed the task"},
		{args: "cron|edit|news|--route=|--once", asks: `PATCH /cron/news {"once":true,"route":""}`, says: "Changed the task"},
		{args: "cron|edit|news", code: 2, warns: "nothing to change"},
		{args: "cron|edit|news|--every|1h|--at|x", code: 2, warns: "--at"},
		{args: "cron|enable|news", asks: `PATCH /cron/news {"enabled":true}`, says: "Enabled the task news. " + next},
		{args: "cron|disable|odd name", asks: `PATCH /cron/odd%20name {"enabled":false}`, says: "Disabled the task odd name.\n"},
		{args: "cron|run|news", asks: "POST /cron/news/run?key=K", says: "claybot cron show news\n"},
		{args: "cron|delete|news", asks: "DELETE /cron/news", says: ".done"},
		{args: "cron|delete|nope", code: 1, asks: "DELETE /cron/nope", warns: "There is no such thing."},
		{args: "cron|delete|a/b", code: 1, asks: "DELETE /cron/a%2Fb", warns: "There is no such thing."},
		{args: "cron|nonsense", code: 2, warns: "unexpected argument nonsense"},
	})
	d.wantJSON(t, `"problems"`, "cron", "--json")
	d.wantJSON(t, `"firings"`, "cron", "show", "news", "--json")
	d.wantJSON(t, `"slug": "news"`, "cron", "add", "--json", "--name", "N", "--every", "1h", "p")
	if _, out, _, _ := d.use("cron", "add", "--json", "--dry-run", "--name", "N", "--every", "1h", "p"); strings.Contains(out, "slug") || !strings.Contains(out, `"next"`) {
		t.Errorf("a dry run prints %s", out)
	}
}

func TestCronWithoutTasks(t *testing.T) {
	d := openDesk(t, map[string]string{"GET /cron": `{"tasks":[],"problems":[]}`, "GET /heartbeat": `404{"error":{"message":"The heartbeat is off."}}`})
	d.deals(t, []deal{
		{args: "cron", asks: "GET /cron", says: "No tasks; create one with: claybot cron add\n"},
		{args: "heartbeat", code: 1, asks: "GET /heartbeat", warns: "claybot: The heartbeat is off."},
	})
}

func TestHeartbeatCommands(t *testing.T) {
	d := openDesk(t, map[string]string{
		"GET /heartbeat": `{"beats":[{"id":"tidy","title":"Tidy up","every":"2h","activeHours":"08:00-22:00","enabled":true,"prompt":"p","next":"2027-01-31T09:00:00Z"},` +
			`{"id":"off","title":"Off","enabled":false,"prompt":"p"},{"id":"rest","title":"Rest","enabled":true,"prompt":"p","stopped":"chat is idle","lastRun":"2027-01-31T09:00:00Z"}],` +
			`"problems":[{"file":"heartbeat/x.md","line":2,"text":"unknown key"}]}`,
		"POST /heartbeat/run": `{"tasks":2}`,
	})
	at := moment(time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC))
	d.deals(t, []deal{
		{args: "heartbeat", asks: "GET /heartbeat", says: "tidy  Tidy up  2h       08:00-22:00  " + at + "   never\n"},
		{args: "heartbeat|list", asks: "GET /heartbeat", says: "off   Off      default  -            off                   never\n"},
		{args: "heartbeat", asks: "GET /heartbeat", says: "rest  Rest     default  -            paused: chat is idle  " + at + "\nheartbeat/x.md:2: unknown key\n"},
		{args: "heartbeat|run", asks: `POST /heartbeat/run?key=K {}`, says: "runs 2 tasks now"},
		{args: "heartbeat|run|tidy|off", asks: `POST /heartbeat/run?key=K {"ids":["tidy","off"]}`, says: "runs 2 tasks now"},
	})
	d.wantJSON(t, `"stopped": "chat is idle"`, "heartbeat", "--json")
}

func TestNext(t *testing.T) {
	at := []time.Time{time.Date(2027, 3, 28, 3, 0, 0, 0, time.FixedZone("CEST", 7200))}
	for _, tc := range []struct {
		task connectors.Task
		want string
	}{
		{connectors.Task{Enabled: true, Next: at}, "2027-03-28 03:00:00"},
		{connectors.Task{Enabled: false, Next: at}, "off"},
		{connectors.Task{Enabled: true, Next: at, Paused: "its place\nis gone"}, "paused: its place is gone"},
		{connectors.Task{Enabled: true}, "never"},
	} {
		if got := next(tc.task); got != tc.want {
			t.Errorf("next of %+v = %q, want %q", tc.task, got, tc.want)
		}
	}
	if got := nextFive(nil); got != "It does not run again.\n" {
		t.Errorf("no next: %q", got)
	}
	if got := nextFive(at); got != "Next runs:\n  Sun 2027-03-28 03:00:00 CEST\n" {
		t.Errorf("next: %q", got)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " a\n\tb ": "a b", strings.Repeat("ä", 100): strings.Repeat("ä", 100), strings.Repeat("ä", 101): strings.Repeat("ä", 99) + "…",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}
