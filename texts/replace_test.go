package texts

import (
	"strings"
	"testing"
)

// Each text has one id, and the text itself can take its place in each language.
func TestIDs(t *testing.T) {
	all := IDs()
	if len(all) < 500 {
		t.Fatalf("only %d texts", len(all))
	}
	for _, id := range all {
		if len(id) > maxID+3 || id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("the id %q", id)
		}
		for _, l := range All() {
			text := Voice{Language: l}.ByID(id)
			if err := Replaceable(string(l), id, text); err != nil && !strings.Contains(err.Error(), "too many") {
				t.Errorf("%s: %s: %v", l, id, err)
			}
			own := Voice{Language: l, Replaced: Replaced{string(l): {id: "own " + id}}}
			if got := own.ByID(id); got != "own "+id {
				t.Errorf("%s: %s is %q", l, id, got)
			}
		}
	}
	for _, id := range []string{"with", "sent-again-the-first-copy-may-have-arrived", "show-what-i-can-do", ""} {
		if text := (Voice{}).ByID(id); text != "" {
			t.Errorf("%s can be replaced: %q", id, text)
		}
	}
}

func TestReplaceable(t *testing.T) {
	const pairing = "hello-i-dont-know-you-yet-your-pairing-code-is"
	for _, x := range []struct{ id, text, want string }{
		{"stopped-2", "Done, it has stopped.", ""},
		{"stopped-2", "Stopped at 100%.", ""},
		{"nothing-is", "", "there is no text"},
		{"stopped-2", " ", "empty"},
		{"stopped-2", strings.Repeat("x", 76), "76 characters are too many: this text may be on a button, which has room for 75"},
		{pairing, "Code: %[1]s" + strings.Repeat("x", 3000), "too many"},
		{pairing, "Your code is %s.", ""},
		{pairing, "Your code is %[1]s, yes, %[1]s.", ""},
		{pairing, "Your code is secret.", "needs the values %[1]s, and has none"},
		{pairing, "%s %s", "needs the values %[1]s, and has %[1]s %[2]s"},
		{pairing, "%d", "needs the values %[1]s, and has %[1]d"},
		{pairing, "%s is 100% yours", `"% yours" is not a value`},
		{pairing, "%s is 100%% yours", ""},
		{pairing, "%s %", `"%" is not a value`},
		{pairing, "%s %[1]%", `"%[1]%" is not a value`},
		{pairing, "```%s", "must not contain"},
		{"more", "another|%d others", ""},
		{"more", "one %d|%d others", ""},
		{"more", "%d others", "needs 2 forms"},
		{"more", "one|others", "needs the values %[1]d, and has none"},
	} {
		err := Replaceable("en", x.id, x.text)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %.40q: %v, want %q", x.id, x.text, err, x.want)
		}
	}
}

// The texts of an operator are said in their language alone, with values and commands in place.
func TestReplacedIsSaid(t *testing.T) {
	v := Voice{Replaced: Replaced{"en": {"i-dont-know-the-command-help-shows-what-i-can-do": "%s? Try /help.", "more": "another|%d others"}}, Command: func(name string) string { return "!" + name }}
	if got := v.UnknownCommand("x"); got != "/x? Try !help." {
		t.Errorf("said %q", got)
	}
	if one, two := v.Count(1, "%d more|%d more"), v.Count(2, "%d more|%d more"); one != "another" || two != "2 others" {
		t.Errorf("said %q and %q", one, two)
	}
	full := Voice{Replaced: Replaced{"en": {"more": "100%% of it|%d others"}}}
	if got := full.Count(1, "%d more|%d more"); got != "100% of it" {
		t.Errorf("said %q", got)
	}
	v.Language = German
	if got := v.UnknownCommand("x"); !strings.HasPrefix(got, "Den Befehl /x") {
		t.Errorf("said %q", got)
	}
}
