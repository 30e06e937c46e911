package agentsystem

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
)

// What an earlier version stored is known by its present name: no fault is told twice, and each ends.
func TestStoredFindingsHavePresentNames(t *testing.T) {
	t.Parallel()
	const old = `{"parts":{
		"sink crm":{"open":"sink-failing","told":{"sink-failing":1795953600000},"seen":1795953600000,"by":"a"},
		"check histories":{"open":"check-failing","told":{"check-failing":1795953600000},"seen":1795953600000,"by":"a"}
	},"sent":3,"due":[{"what":"sink erp","code":"sink-failing","part":{"kind":"The event sink %s","name":"erp"}}]}`
	relay := overview.Finding{What: "relay crm", Level: overview.LevelWarning, Code: "relay-failing", Part: texts.Part{Kind: texts.PartRelay, Name: "crm"}, Means: "it takes nothing"}
	damage := overview.Finding{What: "check histories", Level: overview.LevelProblem, Code: "history-damaged", Part: texts.Part{Kind: texts.PartCheck, Name: "histories"}, Means: "lines are damaged"}
	over := func(f overview.Finding) overview.Finding {
		return overview.Finding{What: f.What, Level: overview.LevelOK, Code: overview.LevelOK, Part: f.Part}
	}
	unread := damage
	unread.Code = "history-unreadable"

	k := stored(old)
	if d := k.Due; len(d) != 1 || d[0].What != "relay erp" || d[0].Code != "relay-failing" || d[0].Part.Kind != texts.PartRelay {
		t.Errorf("the notice that was due is %+v", d)
	}
	k.Due = nil
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name string
		all  []overview.Finding
		want []string // what is told, with its code
	}{
		{"after the upgrade", []overview.Finding{relay, damage}, nil},
		{"with another cause of the check", []overview.Finding{relay, unread}, []string{"check histories history-unreadable"}},
		{"when all works", []overview.Finding{over(relay), over(damage)}, []string{"check histories ", "relay crm "}},
		{"within the hour", []overview.Finding{over(relay), unread}, nil},
	} {
		k = stored(k.text())
		k.decide(step.all, "a", true, now)
		var got []string
		for _, d := range k.Due {
			got = append(got, d.What+" "+d.Code)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s, operators read %q, want %q", step.name, got, step.want)
		}
		k.settle("a", now)
		now = now.Add(10 * time.Minute)
	}
	both := stored(`{"parts":{"sink crm":{"open":"sink-failing","seen":1},"relay crm":{"seen":2}}}`).Parts
	if p := both["relay crm"]; len(both) != 1 || p.Open != "" || p.Seen != 2 {
		t.Errorf("under both names, it is %+v", both)
	}
	if at := stored(old).Parts["relay crm"].Told["relay-failing"]; at != 1795953600000 {
		t.Errorf("told at %v", at)
	}
}

// A member that is alone takes over what is known of the disk under another name, such as that of its container before.
func TestDiskOfAnotherNameEnds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	disk := func(code, name string) overview.Finding {
		level := overview.LevelWarning
		if code == "" {
			level = overview.LevelOK
		}
		return overview.Finding{What: "disk", Level: level, Code: code, Part: texts.Part{Kind: texts.PartDisk, Name: name}, Means: "little is free"}
	}
	type look struct {
		after      time.Duration // since the start
		code, name string        // what a member finds
		others     bool          // are present
		want       string        // what is told: the code, and of which member
	}
	for name, looks := range map[string][]look{
		"the same cause":     {{0, "disk-low", "a", false, "disk-low a"}, {time.Minute, "disk-low", "b", false, ""}, {5 * time.Hour, "disk-low", "b", false, ""}, {6 * time.Hour, "", "b", false, " b"}, {7 * time.Hour, "", "b", false, ""}},
		"another cause":      {{0, "disk-low", "a", false, "disk-low a"}, {time.Minute, "disk-full", "b", false, "disk-full b"}, {2 * time.Minute, "", "b", false, " b"}},
		"room after a while": {{0, "disk-low", "a", false, "disk-low a"}, {time.Minute, "", "b", false, ""}, {26 * time.Minute, "", "b", false, " b"}},
		"a member is back":   {{0, "disk-low", "a", true, "disk-low a"}, {time.Minute, "", "b", false, ""}, {2 * time.Minute, "disk-low", "a", true, ""}, {3 * time.Minute, "", "a", true, " a"}},
		"two members":        {{0, "disk-low", "a", true, "disk-low a"}, {time.Minute, "disk-low", "b", true, "disk-low b"}, {time.Hour, "", "b", true, " b"}, {2 * time.Hour, "", "a", true, " a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := stored("")
			for i, x := range looks {
				now := start.Add(x.after)
				k.decide([]overview.Finding{disk(x.code, x.name)}, x.name, !x.others, now)
				got := ""
				for _, d := range k.Due {
					got += d.Code + " " + d.Part.Name
				}
				if got != x.want {
					t.Errorf("look %d: operators read %q, want %q", i+1, got, x.want)
				}
				k.settle(x.name, now)
			}
		})
	}
}
