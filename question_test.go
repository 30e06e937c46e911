package claybot_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones on machines without a database of them
	"unicode"

	"github.com/claybot/claybot"
)

func bound(x float64) *float64 { return &x }

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

var (
	colours = []string{"red", "Dark green", "blue"}
	sizes   = []string{"2", "1", "10"}
)

func TestCheck(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	wide := claybot.Question{Type: claybot.QuestionNumber}
	text := claybot.Question{Type: claybot.QuestionText, Required: true}
	code := claybot.Question{Type: claybot.QuestionText, Format: `[A-Z]{2}\d+|x`, Example: "AB12"}
	long := claybot.Question{Type: claybot.QuestionTextarea, Min: bound(3), Max: bound(5)}
	number := claybot.Question{Type: claybot.QuestionNumber, Min: bound(-2), Max: bound(10.5)}
	one := claybot.Question{Type: claybot.QuestionSelect, Options: colours}
	size := claybot.Question{Type: claybot.QuestionSelect, Options: sizes}
	some := claybot.Question{Type: claybot.QuestionMultiselect, Options: append(colours, "a, b"), Max: bound(2), Required: true}
	none := claybot.Question{Type: claybot.QuestionMultiselect, Options: colours, Min: bound(0), Required: true}
	plain := func(t claybot.QuestionType) claybot.Question { return claybot.Question{Type: t} }
	tests := []struct {
		q     claybot.Question
		value string
		want  string // the JSON, or after an exclamation mark a part of the error
	}{
		{text, "  hello \n", `"hello"`},
		{text, " \t\u00a0\n", "!Please give an answer."},
		{text, "", "!Please give an answer."},
		{plain(claybot.QuestionText), " ", "null"},
		{text, "a\x00b\x1b[31mc\xff", `"ab[31mc` + "\uFFFD" + `"`},
		{text, strings.Repeat("é", 10_000), `"` + strings.Repeat("é", 10_000) + `"`},
		{text, strings.Repeat("é", 10_001), "!10001 characters"},
		{code, "AB12", `"AB12"`},
		{code, "xAB12", "!such as AB12."},
		{code, "AB12\n\nx", "!form"},
		{claybot.Question{Type: claybot.QuestionText, Format: "a)|(b"}, "a", "!broken"},
		{claybot.Question{Type: claybot.QuestionText, Format: `(a*)*b`}, strings.Repeat("a", 9000), "!form"}, // in linear time
		{long, "ééé", `"ééé"`},
		{long, "éé", "!at least 3 characters; that has 2."},
		{long, "123456", "!at most 5 characters; that has 6."},

		{plain(claybot.QuestionEmail), " Ann@Example.ORG", `"ann@example.org"`},
		{plain(claybot.QuestionEmail), "ann+x@mail.example.org", `"ann+x@mail.example.org"`},
		{plain(claybot.QuestionEmail), "Ann <ann@example.org>", "!not an email address"},
		{plain(claybot.QuestionEmail), "ann@example", "!not an email address"},
		{plain(claybot.QuestionEmail), "ann@[127.0.0.1]", "!not an email address"},
		{plain(claybot.QuestionEmail), "ann@-a.org", "!not an email address"},
		{plain(claybot.QuestionEmail), "a@b.org,c@d.org", "!not an email address"},
		{plain(claybot.QuestionEmail), "a@b.org\nBcc: c@d.org", "!not an email address"},
		{plain(claybot.QuestionEmail), `"a b"@c.org`, "!not an email address"},
		{plain(claybot.QuestionEmailList), "a@b.org; C@d.org,a@B.org e@f.org", `["a@b.org","c@d.org","e@f.org"]`},
		{plain(claybot.QuestionEmailList), `["a@b.org", "c@d.org"]`, `["a@b.org","c@d.org"]`},
		{plain(claybot.QuestionEmailList), "a@b.org bob", `!“bob” is not`},
		{plain(claybot.QuestionEmailList), ",;", "!at least one"},
		{plain(claybot.QuestionEmailList), "[]", "!at least one"},

		{plain(claybot.QuestionDatetime), "2026-03-31 15:04", `"2026-03-31T15:04:00+02:00"`},
		{plain(claybot.QuestionDatetime), "2026-01-31T15:04:05", `"2026-01-31T15:04:05+01:00"`},
		{plain(claybot.QuestionDatetime), "31.1.2026  15:04", `"2026-01-31T15:04:00+01:00"`},
		{plain(claybot.QuestionDatetime), "2026-01-31t15:04:05.25z", `"2026-01-31T15:04:05Z"`},
		{plain(claybot.QuestionDatetime), "2026-01-31 15:04 -0330", "!date and a time"},
		{plain(claybot.QuestionDatetime), "2026-01-31 15:04 -03:30", `"2026-01-31T15:04:00-03:30"`},
		{plain(claybot.QuestionDatetime), "2026-03-29 02:30", "!does not exist"},
		{plain(claybot.QuestionDatetime), "2026-02-30 12:00", "!date and a time"},
		{plain(claybot.QuestionDatetime), "2026-02-03", "!date and a time"},
		{plain(claybot.QuestionDatetime), "1850-01-01 12:00", `"1850-01-01T11:06:32Z"`},
		{plain(claybot.QuestionDatetime), "tomorrow", "!date and a time"},
		{plain(claybot.QuestionDate), "2028-02-29", `"2028-02-29"`},
		{plain(claybot.QuestionDate), "2026-02-29", "!a day that exists"},
		{plain(claybot.QuestionDate), "29.2.2028", "!a day that exists"},
		{plain(claybot.QuestionTime), "07:30", `"07:30"`},
		{plain(claybot.QuestionTime), "7:30", `"07:30"`},
		{plain(claybot.QuestionTime), "24:00", "!time of day"},
		{plain(claybot.QuestionTime), "7.30", "!time of day"},

		{number, "2,50", "2.5"},
		{number, "+007", "7"},
		{number, "-0,0", "0"},
		{number, ".5", "0.5"},
		{number, "5.", "5"},
		{number, "-2.01", "!at least -2."},
		{number, "10.51", "!at most 10.5."},
		{wide, "1.000,5", "1000.5"},
		{wide, "1,234.50", "1234.5"},
		{wide, "-1.234.567,89", "-1234567.89"},
		{wide, "1.234.567", "1234567"},
		{wide, "1,234,567", "1234567"},
		{wide, "1 234,5", "1234.5"},
		{wide, "1\u202f234", "1234"},
		{wide, "1'234'567.5", "1234567.5"},
		{wide, "1.234", "1.234"},
		{wide, "1,234", "!That can be read as 1234 or as 1.234."},
		{wide, "-12,500", "!That can be read as -12500 or as -12.5."},
		{wide, "0,123", "0.123"},
		{wide, "1234,567", "1234.567"},
		{wide, "1,23,456", "!Please give a number"},
		{wide, "1.234,567,8", "!Please give a number"},
		{wide, "1,234.567.8", "!Please give a number"},
		{wide, "1,2345.6", "!Please give a number"},
		{wide, "01,234,567", "!Please give a number"},
		{number, "1e3", "!Please give a number"},
		{number, "0x10", "!Please give a number"},
		{number, "-", "!Please give a number"},
		{number, "NaN", "!Please give a number"},
		{number, "٣", "!Please give a number"},
		{plain(claybot.QuestionNumber), "12345678901234567890.10", "12345678901234567890.1"},
		{plain(claybot.QuestionNumber), strings.Repeat("9", 41), "!Please give a number"},

		{one, "red", `"red"`},
		{one, "DARK GREEN.", `"Dark green"`},
		{one, "3", `"blue"`},
		{one, " 2) ", `"Dark green"`},
		{one, "#1", `"red"`},
		{one, "0", "!please choose one of: red, Dark green, blue."},
		{one, "4", `!“4” is not among`},
		{one, strings.Repeat("x", 100), "!" + strings.Repeat("x", 60) + "…"},
		{size, "1", `"1"`},
		{size, "3", "!please choose one of: 2, 1, 10."},
		{some, "Blue, red", `["blue","red"]`},
		{some, "1;3", `["red","blue"]`},
		{some, "a, b", `["a, b"]`},
		{some, "a, b\nred", `["a, b","red"]`},
		{some, `["a, b","red","red"]`, `["a, b","red"]`},
		{some, "red, red, red", `["red"]`},
		{some, "red, blue, 2", "!at most 2; you chose 3."},
		{some, ", ;", "!at least 1"},
		{some, "red, purple", `!“purple” is not among`},
		{some, "", "!Please give an answer."},
		{none, "", "[]"},
		{none, "[]", "[]"},

		{plain(claybot.QuestionBoolean), "Yes!", "true"},
		{plain(claybot.QuestionBoolean), "nein", "false"},
		{plain(claybot.QuestionBoolean), "1", "true"},
		{plain(claybot.QuestionBoolean), "FALSE", "false"},
		{plain(claybot.QuestionBoolean), "はい", "true"},
		{plain(claybot.QuestionBoolean), "maybe", "!yes or no"},
		{plain(claybot.QuestionConfirm), "approve", "true"},
		{plain(claybot.QuestionConfirm), "Deny", "false"},
		{plain(claybot.QuestionConfirm), "approve all", "!approve or deny"},
		{plain("color"), "red", "!cannot be answered"},
	}
	for _, tt := range tests {
		got, err := tt.q.Check(tt.value, berlin)
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) || got != nil {
				t.Errorf("%s %.60q: %s, %v; want %q", tt.q.Type, tt.value, got, err, want)
			}
			continue
		}
		if err != nil || string(got) != tt.want {
			t.Errorf("%s %.60q: %.80s, %v; want %.80s", tt.q.Type, tt.value, got, err, tt.want)
		}
	}
	if got, err := plain(claybot.QuestionDatetime).Check("2026-03-31 15:04", nil); string(got) != `"2026-03-31T15:04:00Z"` {
		t.Errorf("without a zone: %s, %v", got, err)
	}
}

func TestValid(t *testing.T) {
	q := func(change func(*claybot.Question)) claybot.Question {
		q := claybot.Question{Text: "What?", Type: claybot.QuestionText}
		change(&q)
		return q
	}
	typed := func(typ claybot.QuestionType, change func(*claybot.Question)) claybot.Question {
		return q(func(q *claybot.Question) { q.Type = typ; change(q) })
	}
	tests := []struct {
		name string
		q    claybot.Question
		want string // a part of the error; empty for none
	}{
		{"plain", q(func(*claybot.Question) {}), ""},
		{"no text", q(func(q *claybot.Question) { q.Text = " \n" }), "field question"},
		{"long text", q(func(q *claybot.Question) { q.Text = strings.Repeat("x", 2001) }), "field question"},
		{"no type", q(func(q *claybot.Question) { q.Type = "" }), "field type"},
		{"odd type", q(func(q *claybot.Question) { q.Type = "color" }), "field type"},
		{"odd key", q(func(q *claybot.Question) { q.Key = "a b" }), "field key"},
		{"long example", q(func(q *claybot.Question) { q.Example = strings.Repeat("x", 501) }), "field example"},
		{"select", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = colours }), ""},
		{"no options", typed(claybot.QuestionSelect, func(*claybot.Question) {}), "field options: must not be empty"},
		{"options of a text", q(func(q *claybot.Question) { q.Options = colours }), "field options"},
		{"empty option", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{"a", " "} }), "option 2 is empty"},
		{"two lines", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{"a\nb"} }), "option 1 must be one line"},
		{"control", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{"a\x1b"} }), "option 1 must be one line"},
		{"invalid UTF-8", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{"a\xff"} }), "option 1 must be one line"},
		{"long option", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{strings.Repeat("x", 101)} }), "option 1 has more"},
		{"twice", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = []string{"Red", "red"} }), "there twice"},
		{"many", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options = make([]string, 51) }), "51 are given"},
		{"bounds", typed(claybot.QuestionNumber, func(q *claybot.Question) { q.Min, q.Max = bound(-1.5), bound(2) }), ""},
		{"crossed", typed(claybot.QuestionNumber, func(q *claybot.Question) { q.Min, q.Max = bound(3), bound(2) }), "min 3 is more than max 2"},
		{"bounds of a date", typed(claybot.QuestionDate, func(q *claybot.Question) { q.Min = bound(1) }), "fields min and max"},
		{"half a character", q(func(q *claybot.Question) { q.Min = bound(1.5) }), "field min"},
		{"negative length", q(func(q *claybot.Question) { q.Max = bound(-1) }), "field max"},
		{"no length", q(func(q *claybot.Question) { q.Max = bound(0) }), "field max"},
		{"more than there is", typed(claybot.QuestionMultiselect, func(q *claybot.Question) { q.Options, q.Min = colours, bound(4) }), "field min"},
		{"format", q(func(q *claybot.Question) { q.Format = `\d+` }), ""},
		{"no format", q(func(q *claybot.Question) { q.Format = `(` }), "field format"},
		{"unbalanced inside", q(func(q *claybot.Question) { q.Format = `a)|(b` }), "field format"},
		{"back reference", q(func(q *claybot.Question) { q.Format = `(a)\1` }), "field format"},
		{"huge", q(func(q *claybot.Question) { q.Format = `((a{100}){100}){100}` }), "field format"},
		{"long format", q(func(q *claybot.Question) { q.Format = strings.Repeat("a", 501) }), "field format"},
		{"format of a number", typed(claybot.QuestionNumber, func(q *claybot.Question) { q.Format = "1" }), "field format"},
		{"default", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options, q.Default = colours, "2" }), ""},
		{"odd default", typed(claybot.QuestionSelect, func(q *claybot.Question) { q.Options, q.Default = colours, "purple" }), "field default"},
		{"default no", typed(claybot.QuestionConfirm, func(q *claybot.Question) { q.Default = "no" }), ""},
		{"default yes", typed(claybot.QuestionConfirm, func(q *claybot.Question) { q.Default = "yes" }), "not approved"},
	}
	for _, tt := range tests {
		err := tt.q.Valid()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// For any input, the answer is JSON that checks as itself, or one
// sentence.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"", "red", "2", "a@b.org", "2026-03-31 15:04", "1850-01-01 12:00", "07:30", "2,5", `["a"]`, "yes", "\xff\x00", "a, b; c"} {
		f.Add(seed)
	}
	berlin := zone(f, "Europe/Berlin")
	questions := []claybot.Question{
		{Type: claybot.QuestionText, Format: `\w*`},
		{Type: claybot.QuestionTextarea, Max: bound(100)},
		{Type: claybot.QuestionEmail},
		{Type: claybot.QuestionEmailList},
		{Type: claybot.QuestionDatetime},
		{Type: claybot.QuestionDate},
		{Type: claybot.QuestionTime},
		{Type: claybot.QuestionNumber, Min: bound(-5)},
		{Type: claybot.QuestionSelect, Options: colours},
		{Type: claybot.QuestionMultiselect, Options: sizes},
		{Type: claybot.QuestionBoolean},
		{Type: claybot.QuestionConfirm},
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, q := range questions {
			got, err := q.Check(value, berlin)
			if err != nil {
				if s := err.Error(); got != nil || !strings.HasSuffix(s, ".") || !unicode.IsUpper([]rune(s)[0]) && !unicode.IsDigit([]rune(s)[0]) && !strings.HasPrefix(s, "“") {
					t.Fatalf("%s %q: %s, %q", q.Type, value, got, s)
				}
				continue
			}
			if !json.Valid(got) {
				t.Fatalf("%s %q: %q is not JSON", q.Type, value, got)
			}
			if string(got) == "null" {
				continue
			}
			again := string(got)
			if got[0] == '"' {
				if err := json.Unmarshal(got, &again); err != nil {
					t.Fatal(err)
				}
			}
			if second, err := q.Check(again, berlin); err != nil || string(second) != string(got) {
				t.Fatalf("%s %q: %s, and again %s, %v", q.Type, value, got, second, err)
			}
		}
	})
}

func FuzzValid(f *testing.F) {
	f.Add("What?", "text", "a\nb", "a|b", "a", 1.0, 2.0)
	f.Add("What?", "select", "a\nb", "", "2", 0.0, 0.0)
	f.Fuzz(func(t *testing.T, text, typ, options, format, def string, low, high float64) {
		q := claybot.Question{Text: text, Type: claybot.QuestionType(typ), Format: format, Default: def}
		if options != "" {
			q.Options = strings.Split(options, "\n")
		}
		if low != 0 {
			q.Min = &low
		}
		if high != 0 {
			q.Max = &high
		}
		if q.Valid() != nil {
			return
		}
		for _, o := range q.Options { // each can be chosen
			if q.Type != claybot.QuestionSelect {
				break
			}
			var chosen string
			if v, err := q.Check(o, nil); err != nil || json.Unmarshal(v, &chosen) != nil || chosen != o {
				t.Fatalf("%q: %s, %v", o, v, err)
			}
		}
		if def != "" {
			if _, err := q.Check(def, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]bool{
		"no, use the other file": true, "No. They are plastic.": true, "nein – das ist falsch": true, "NO! stop": true, "deny: too dear": true, "no\nnot now": true, "不，别这样": true,
		"no": false, "": false, "no problem, go ahead": false, "what would that delete exactly?": false, "nothing yet": false, "north, please": false,
		"yes, do it": false, "now, then": false, ", no": false, "off the record": false, "0, 1": false,
	} {
		if got := claybot.Refuses(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
