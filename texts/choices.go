package texts

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// LanguageNow answers /language without a language.
func (v Voice) LanguageNow() string {
	return v.Say("I speak %s here. To change that, send /language and one of: %s. /language default takes a choice back.", v.grammar().Name, Languages())
}

// NoLanguage refuses a language that the catalogue lacks.
func (v Voice) NoLanguage(word string) string {
	return v.Say("I don't speak “%s”. Send /language and one of: %s.", connectors.Literal(word, 40), Languages())
}

// LanguageChosen confirms /language in the language that holds from now on.
func (v Voice) LanguageChosen(byDefault bool) string {
	if byDefault {
		return v.Say("Done. Without a choice, I speak %s here.", v.grammar().Name)
	}
	return v.Say("Done. From now on I speak %s here.", v.grammar().Name)
}

// TimezoneNow answers /timezone without a zone.
func (v Voice) TimezoneNow() string {
	return v.Say("I tell times in the zone %s, where it is %s. To change that, send /timezone and a zone such as Europe/Berlin. /timezone default takes a choice back.", v.zone(), v.hourNow())
}

// NoTimezone refuses a zone that does not exist.
func (v Voice) NoTimezone(word string) string {
	return v.Say("I don't know the time zone “%s”. Send /timezone and a zone such as Europe/Berlin or America/New_York.", connectors.Literal(word, 40))
}

// TimezoneChosen confirms /timezone with the zone that holds from now on.
func (v Voice) TimezoneChosen(byDefault bool) string {
	if byDefault {
		return v.Say("Done. Without a choice, I tell times in the zone %s, where it is %s.", v.zone(), v.hourNow())
	}
	return v.Say("Done. From now on I tell times in the zone %s, where it is %s.", v.zone(), v.hourNow())
}

// hourNow is the present time in the zone.
func (v Voice) hourNow() string { return v.hour(claybot.At(time.Now())) }
