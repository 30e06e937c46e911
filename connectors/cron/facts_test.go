package cron

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/claybot/claybot"
)

// What is remembered of tasks goes from a mark to files and back, also of tasks that
// are gone, and members that this version does not know stay.
func TestCopyFacts(t *testing.T) {
	here, gone, broken := string(claybot.NewID()), string(claybot.NewID()), string(claybot.NewID())
	mark := fmt.Sprintf(`{%q:{"timing":"a","since":5,"anchor":0,"later":[1]},%q:{"timing":"b","since":0,"anchor":0,"gone":7},%q:{"since":1}}`, here, gone, broken)
	files := map[string][]byte{
		"cron/b/TASK.md":       []byte("---\nuid: " + here + "\nevery: 1h\n---\nDo it.\n"),
		"cron/c/TASK.md":       []byte("---\nuid: " + broken + "\nevery: never\n---\n"),
		"cron/.done/d/TASK.md": []byte("---\nuid: " + gone + "\nevery: 1h\n---\nDone.\n"),
		"cron/b/MEMORY.md":     nil,
		"skills/b/TASK.md":     []byte("---\nuid: " + gone + "\nevery: 1h\n---\nDo it.\n"),
	}
	made := splitFacts(mark, files)
	want := []string{"cron/.gone/" + gone + ".json", "cron/b/facts.json", "cron/c/facts.json"}
	if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, want) {
		t.Fatalf("files %q, want %q", got, want)
	}
	var shared factsOf
	if err := json.Unmarshal(made["cron/b/facts.json"], &shared); err != nil || shared.UID != here || shared.Since != 5 {
		t.Errorf("what a node reads: %+v, %v", shared, err)
	}
	for p, body := range made {
		if !isFacts(p) || idOfFacts(body) == "" {
			t.Errorf("%s is not known", p)
		}
	}
	var got, was map[string]map[string]any
	if err := json.Unmarshal([]byte(joinFacts(made)), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(mark), &was); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(was) {
		t.Errorf("came back as %v, want %v", got, was)
	}
}

func TestCopyFactsOdd(t *testing.T) {
	for _, mark := range []string{"", "null", "[]", "{", `{"x":1}`, `{"../x":{"since":1}}`} {
		if made := splitFacts(mark, nil); len(made) != 0 {
			t.Errorf("%q made %v", mark, made)
		}
	}
	for p, body := range map[string]string{
		"cron/a/facts.json": `{"since":1}`, "cron/a/b/facts.json": `{"uid":"x"}`, "cron/facts.json": `{"uid":"x"}`, "cron/.done/facts.json": `{"uid":"x"}`,
		"heartbeat/a/facts.json": `{"uid":"x"}`, "cron/a/TASK.md": `{"uid":"x"}`,
	} {
		if isFacts(p) && idOfFacts([]byte(body)) != "" {
			t.Errorf("%s with %s passes for what is remembered of a task", p, body)
		}
	}
	if got := joinFacts(nil); got != "{}" {
		t.Errorf("of no files: %s", got)
	}
}
