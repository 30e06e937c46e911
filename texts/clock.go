package texts

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
)

// A clock says dates and times in a language.
type clock struct {
	days   [3]string // yesterday, today, tomorrow
	at     string    // a day and its time of day
	on     string    // a date as the time of something
	months [12]string
	week   [7]string
	day    string // day, month, after "for"
	date   string // weekday, day, month
	year   string // a date, and its year
	hour   string // a time of day
	zoned  string // a time of day, and its zone
}

var englishClock = clock{
	days: [3]string{"yesterday", "today", "tomorrow"}, at: "%s at %s", on: "on %s", day: "%[1]d %[2]s", date: "%[1]s, %[2]d %[3]s", year: "%s %d", hour: "%s", zoned: "%s %s",
	months: [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	week:   [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
}

var germanClock = clock{
	days: [3]string{"gestern", "heute", "morgen"}, at: "%s um %s", on: "am %s", day: "den %[1]d. %[2]s", date: "%[1]s, %[2]d. %[3]s", year: "%s %d", hour: "%s Uhr", zoned: "%s Uhr (%s)",
	months: [12]string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"},
	week:   [7]string{"Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"},
}

// zone returns the zone of the times.
func (v Voice) zone() *time.Location {
	if v.Zone == nil {
		return time.UTC
	}
	return v.Zone
}

// date is a day or a month of a year, which is stored as in budgets: 3 Oct 2026, October 2026.
func (v Voice) date(english string) string {
	c := v.grammar().clock
	if at, err := time.Parse("2 Jan 2006", english); err == nil {
		return fmt.Sprintf(c.year, fmt.Sprintf(c.day, at.Day(), c.months[at.Month()-1]), at.Year())
	}
	at, err := time.Parse("January 2006", english)
	if err != nil {
		return english
	}
	return fmt.Sprintf(c.year, c.months[at.Month()-1], at.Year())
}

// Moment names a time as people do, for the end of "since", "until" or "of": "today at 14:05",
// "Friday, 3 October at 9:00". The year is named unless it is this one.
func (v Voice) Moment(t claybot.Time) string {
	text, _ := v.moment(t)
	return text
}

// When is Moment as the time of something that happens: "tomorrow at 9:00", "on Friday, 3 October
// at 9:00".
func (v Voice) When(t claybot.Time) string {
	text, dated := v.moment(t)
	if !dated {
		return text
	}
	return fmt.Sprintf(v.grammar().clock.on, text)
}

// Lasting is the Voice for what people may read days later, such as a question: its times name
// their date.
func (v Voice) Lasting() Voice {
	v.Dated = true
	return v
}

// deadline is When, with the date unless it is today: what expires tomorrow is still read tomorrow.
func (v Voice) deadline(t claybot.Time) string {
	if v.days(t) == 0 {
		return v.When(t)
	}
	return v.Lasting().When(t)
}

// Hour is the time of day of t, with the day unless it is today: "14:05".
func (v Voice) Hour(t claybot.Time) string {
	if v.days(t) == 0 {
		return v.hour(t)
	}
	return v.Moment(t)
}

func (v Voice) hour(t claybot.Time) string {
	at := t.Time().In(v.zone())
	text := at.Format("15:04")
	if text[0] == '0' {
		text = text[1:]
	}
	if v.Own {
		return fmt.Sprintf(v.grammar().clock.hour, text)
	}
	return fmt.Sprintf(v.grammar().clock.zoned, text, at.Format("MST"))
}

// days returns how many days after today t is.
func (v Voice) days(t claybot.Time) int {
	day := func(t time.Time) int64 {
		y, m, d := t.In(v.zone()).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	return int(day(t.Time()) - day(time.Now()))
}

func (v Voice) moment(t claybot.Time) (text string, dated bool) {
	c, days := v.grammar().clock, v.days(t)
	if days >= -1 && days <= 1 && !v.Dated {
		return fmt.Sprintf(c.at, c.days[days+1], v.hour(t)), false
	}
	at := t.Time().In(v.zone())
	day := fmt.Sprintf(c.date, c.week[at.Weekday()], at.Day(), c.months[at.Month()-1])
	if at.Year() != time.Now().In(v.zone()).Year() {
		day = fmt.Sprintf(c.year, day, at.Year())
	}
	return fmt.Sprintf(c.at, day, v.hour(t)), true
}
