package claybot

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of an answer.
const (
	maxAnswer = 10_000 // characters
	maxEmails = 100
)

// A complaint says what is wrong with an answer, as one sentence for who gave
// it.
type complaint struct {
	format string
	args   []any
}

func (c complaint) Error() string { return fmt.Sprintf(c.format, c.args...) }

// Text returns the sentence and the values in it, so that it can be translated.
func (c complaint) Text() (format string, args []any) { return c.format, c.args }

func complain(format string, args ...any) error { return complaint{format, args} }

// Check reads a person's answer to q, and returns it in the form in which it
// is stored and given to the run:
//
//	text, textarea, email, select   a string
//	email_list, multiselect         a list of strings without repeats
//	datetime                        a string, ISO 8601 with an offset
//	date, time                      a string, YYYY-MM-DD or HH:mm
//	number                          a number
//	boolean, confirm                true or false
//
// An empty answer to a question that is not required is null. zone is where a
// date and time without an offset is meant; nil is UTC. The error is one
// sentence for who answered. Checking a stored value again gives the same.
func (q Question) Check(value string, zone *time.Location) (json.RawMessage, error) {
	v := strings.TrimSpace(strings.Map(readable, strings.ToValidUTF8(value, "\uFFFD")))
	if n := utf8.RuneCountInString(v); n > maxAnswer {
		return nil, complain("That has %d characters; at most %d can be taken.", n, maxAnswer)
	}
	if v == "" {
		return q.nothing()
	}
	var x any
	var err error
	switch q.Type {
	case QuestionText, QuestionTextarea:
		x, err = q.text(v)
	case QuestionEmail:
		x, err = email(v)
	case QuestionEmailList:
		x, err = emails(v)
	case QuestionDatetime:
		x, err = datetime(v, zone)
	case QuestionDate:
		x, err = date(v)
	case QuestionTime:
		x, err = clock(v)
	case QuestionNumber:
		x, err = q.number(v)
	case QuestionSelect:
		x, err = q.choose(v)
	case QuestionMultiselect:
		x, err = q.chooseAll(v)
	case QuestionBoolean:
		x, err = yesOrNo(v, "Please answer yes or no.")
	case QuestionConfirm:
		if v == "0" || v == "1" { // too easily meant for something else
			return nil, complain("Please answer approve or deny.")
		}
		x, err = yesOrNo(v, "Please answer approve or deny.")
	default:
		err = complain("This question cannot be answered here.")
	}
	if err != nil {
		return nil, err
	}
	return encoded(x), nil
}

// encoded is x as JSON. Strings, lists of them, booleans and numbers always
// marshal.
func encoded(x any) json.RawMessage {
	b, _ := json.Marshal(x)
	return b
}

// readable drops the control characters that no answer needs.
func readable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

// nothing is the answer of who said nothing.
func (q Question) nothing() (json.RawMessage, error) {
	switch {
	case q.Type == QuestionMultiselect && q.Min != nil && *q.Min == 0:
		return json.RawMessage("[]"), nil
	case q.Required:
		return nil, complain("Please give an answer.")
	}
	return json.RawMessage("null"), nil
}

func (q Question) text(v string) (string, error) {
	n := float64(utf8.RuneCountInString(v))
	switch {
	case q.Min != nil && n < *q.Min:
		return "", complain("Please write at least %s characters; that has %.0f.", plainNumber(*q.Min), n)
	case q.Max != nil && n > *q.Max:
		return "", complain("Please write at most %s characters; that has %.0f.", plainNumber(*q.Max), n)
	case q.Format == "":
		return v, nil
	}
	re, err := q.format()
	if err != nil {
		return "", complain("This question cannot be answered: its format is broken.")
	}
	switch {
	case re.MatchString(v):
		return v, nil
	case q.Example != "":
		return "", complain("That does not have the required format, such as %s.", q.Example)
	}
	return "", complain("That does not have the required format.")
}

// format is the expression that a whole text must match. Its time is linear in
// the length of the text.
func (q Question) format() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(q.Format); err != nil { // alone: brackets must not pair with ours
		return nil, err
	}
	return regexp.Compile(`\A(?:` + q.Format + `)\z`)
}

var domainForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+[\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?$`)
})

func email(v string) (string, error) {
	v = strings.ToLower(v)
	a, err := mail.ParseAddress(v)
	at := strings.LastIndexByte(v, '@')
	if err != nil || a.Address != v || len(v) > 254 || at < 1 || at > 64 || strings.ContainsAny(v, " \t\n\"<>()") || !domainForm().MatchString(v[at+1:]) {
		return "", complain("“%s” is not an email address; please write one such as ann@example.org.", short(v))
	}
	return v, nil
}

func emails(v string) ([]string, error) {
	parts, ok := listed(v)
	if !ok {
		parts = strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(",; \t\n\u00a0", r) })
	}
	var all []string
	for _, p := range parts {
		a, err := email(p)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	switch {
	case len(all) == 0:
		return nil, complain("Please give at least one email address.")
	case len(all) > maxEmails:
		return nil, complain("Those are %d addresses; at most %d can be taken.", len(all), maxEmails)
	}
	return all, nil
}

// listed reads a list that came as JSON, as programs write it.
func listed(v string) (parts []string, ok bool) {
	if !strings.HasPrefix(v, "[") || json.Unmarshal([]byte(v), &parts) != nil {
		return nil, false
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts, true
}

// The forms of a date and time: with an offset, and as it is said where the
// person is.
var (
	withOffset = []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04 Z07:00",
	}
	withoutOffset = []string{
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2.1.2006 15:04",
	}
)

func datetime(v string, zone *time.Location) (string, error) {
	v = strings.ToUpper(strings.Join(strings.Fields(v), " "))
	for _, layout := range withOffset {
		if t, err := time.Parse(layout, v); err == nil {
			return iso(t), nil
		}
	}
	if zone == nil {
		zone = time.UTC
	}
	for _, layout := range withoutOffset {
		said, err := time.Parse(layout, v)
		if err != nil {
			continue
		}
		t, err := time.ParseInLocation(layout, v, zone)
		if err != nil || t.Hour() != said.Hour() || t.Minute() != said.Minute() || t.Day() != said.Day() {
			return "", complain("%s does not exist: the clocks are put forward then.", v)
		}
		return iso(t), nil
	}
	return "", complain("Please give a date and a time, such as 2026-03-31 15:04.")
}

// iso writes t in full seconds. Zones of long ago had odd seconds, which no
// offset can tell.
func iso(t time.Time) string {
	if _, offset := t.Zone(); offset%60 != 0 {
		t = t.UTC()
	}
	return t.Format("2006-01-02T15:04:05Z07:00")
}

func date(v string) (string, error) {
	if _, err := time.Parse(time.DateOnly, v); err != nil {
		return "", complain("Please give a day that exists, as year-month-day, such as 2026-03-31.")
	}
	return v, nil
}

func clock(v string) (string, error) {
	t, err := time.Parse("15:04", v)
	if err != nil {
		return "", complain("Please give a time of day from 00:00 to 23:59, such as 15:04.")
	}
	return t.Format("15:04"), nil
}

var numberForm = regexp.MustCompile(`^([+-]?)0*([0-9]*)(?:[.,]([0-9]*))?$`)

// maxDigits is how long a number may be written.
const maxDigits = 40

// Number marks: of thousands, and of these, those of decimals as well.
const (
	groupMarks   = ".,'’ \u00a0\u202f"
	decimalMarks = ".,"
)

var (
	firstGroup = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}$`)
	nextGroup  = regexp.MustCompile(`^[0-9]{3}$`)
)

// ungrouped takes the marks between thousands out of a number, which stays as it is if it has none.
// A mark that is there twice, or beside another one of decimals, tells what it is. A single
// point is one of decimals, as in stored numbers; a comma before three digits may be either.
func ungrouped(v string) (number string, ambiguous bool) {
	for _, mark := range groupMarks {
		groups := strings.Split(v, string(mark))
		last := groups[len(groups)-1]
		decimals := ""
		if i := strings.IndexAny(last, decimalMarks); i >= 0 {
			last, decimals = last[:i], "."+last[i+1:]
		}
		groups[len(groups)-1] = last
		if len(groups) < 2 || !firstGroup.MatchString(groups[0]) || slices.ContainsFunc(groups[1:], func(g string) bool { return !nextGroup.MatchString(g) }) {
			continue
		}
		single := len(groups) == 2 && decimals == "" && strings.ContainsRune(decimalMarks, mark)
		switch {
		case single && mark == '.':
			return v, false
		case single:
			return strings.Join(groups, ""), true
		}
		return strings.Join(groups, "") + decimals, false
	}
	return v, false
}

// number keeps the digits as they were said: a float would change long ones.
func (q Question) number(v string) (json.Number, error) {
	if len(v) > maxDigits {
		return "", complain("Please give a number, such as 3 or 2.5.")
	}
	said := v
	v, ambiguous := ungrouped(v)
	if ambiguous {
		whole, _ := strconv.ParseFloat(v, 64) // these are digits
		part, _ := strconv.ParseFloat(strings.Replace(said, ",", ".", 1), 64)
		return "", complain("That can be read as %s or as %s. Please write the one that you mean.", plainNumber(whole), plainNumber(part))
	}
	m := numberForm.FindStringSubmatch(v)
	if m == nil || !strings.ContainsAny(v, "0123456789") {
		return "", complain("Please give a number, such as 3 or 2.5.")
	}
	sign, whole, part := strings.TrimPrefix(m[1], "+"), m[2], strings.TrimRight(m[3], "0")
	if whole == "" {
		whole = "0"
	}
	if whole == "0" && part == "" {
		sign = ""
	}
	text := sign + whole
	if part != "" {
		text += "." + part
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return "", complain("Please give a number, such as 3 or 2.5.")
	case q.Min != nil && x < *q.Min:
		return "", complain("Please give a number that is at least %s.", plainNumber(*q.Min))
	case q.Max != nil && x > *q.Max:
		return "", complain("Please give a number that is at most %s.", plainNumber(*q.Max))
	}
	return json.Number(text), nil
}

// A plainNumber is a bound, as it is written in an answer.
type plainNumber float64

func (x plainNumber) String() string { return strconv.FormatFloat(float64(x), 'f', -1, 64) }

// Decimal is the number with a decimal point, which other languages write in another way.
func (x plainNumber) Decimal() string { return x.String() }

// Numbered reports whether an option may be named by its number in the list,
// counted from 1. Options that are numbers themselves may not: 2 could mean
// either.
func (q Question) Numbered() bool {
	return !slices.ContainsFunc(q.Options, func(o string) bool { return numberForm.MatchString(strings.TrimSpace(o)) })
}

// option finds the option that an answer means: as it is written, in capitals or
// not, or by its number.
func (q Question) option(v string) (string, bool) {
	if slices.Contains(q.Options, v) {
		return v, true
	}
	plain := strings.TrimRight(v, ".!)")
	for _, said := range []string{v, plain} {
		if i := slices.IndexFunc(q.Options, func(o string) bool { return strings.EqualFold(strings.TrimSpace(o), said) }); i >= 0 {
			return q.Options[i], true
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(plain, "#")); err == nil && n >= 1 && n <= len(q.Options) && q.Numbered() {
		return q.Options[n-1], true
	}
	return "", false
}

func (q Question) choose(v string) (string, error) {
	o, ok := q.option(v)
	if !ok {
		return "", complain("“%s” is not among the answers; please choose one of: %s.", short(v), q.choices())
	}
	return o, nil
}

func (q Question) chooseAll(v string) ([]string, error) {
	all := []string{}
	add := func(o string) {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	parts, ok := listed(v)
	if !ok {
		parts = strings.FieldsFunc(v, func(r rune) bool { return r == '\n' || r == ';' })
	}
	for _, p := range parts {
		if o, is := q.option(strings.TrimSpace(p)); is { // it may have a comma itself
			add(o)
			continue
		}
		for one := range strings.SplitSeq(p, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			o, is := q.option(one)
			if !is {
				return nil, complain("“%s” is not among the answers; please choose from: %s.", short(one), q.choices())
			}
			add(o)
		}
	}
	n := float64(len(all))
	switch {
	case n == 0 && (q.Min == nil || *q.Min > 0), q.Min != nil && n < *q.Min:
		return nil, complain("Please choose at least %s of: %s.", plainNumber(max(1, deref(q.Min))), q.choices())
	case q.Max != nil && n > *q.Max:
		return nil, complain("Please choose at most %s; you chose %.0f.", plainNumber(*q.Max), n)
	}
	return all, nil
}

func deref(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// choices names the options in one line.
func (q Question) choices() string {
	const most = 10
	if len(q.Options) > most {
		return strings.Join(q.Options[:most], ", ") + ", …"
	}
	return strings.Join(q.Options, ", ")
}

// yes and no in many languages; no person is asked which is theirs.
var (
	yes = words("yes y true 1 on ok okay sure approve approved allow ja j oui o sí si s sim da hai evet tak ano kyllä igen ναι да так はい 是 好 예 네 نعم हाँ हां כן ใช่ có ya")
	no  = words("no n false 0 off deny denied reject rejected refuse nein non não nao nej nei nee nu iie hayır hayir nie ne ei nem όχι нет ні いいえ 否 不 不是 아니요 아니오 لا नहीं לא ไม่ không tidak")
)

func words(s string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

func yesOrNo(v, what string) (bool, error) {
	switch w := strings.TrimRight(strings.ToLower(v), ".!。！ "); {
	case yes[w]:
		return true, nil
	case no[w]:
		return false, nil
	}
	return false, complaint{format: what}
}

// Refuses reports whether a text says no and more: it begins with a word of refusal that
// ends a sentence or a part of one, as in "no, use the other file".
func Refuses(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	return end > 0 && no[text[:end]] && strings.IndexAny(strings.TrimLeft(text[end:], " "), ",.;:!-–—\n，。！、") == 0
}

// short is the beginning of an answer, to quote it.
func short(v string) string {
	const most = 60
	if r := []rune(v); len(r) > most {
		return string(r[:most]) + "…"
	}
	return v
}
