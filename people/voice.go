package people

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A manner is how a person, or a group, is spoken to. Empty fields are unknown.
type manner struct {
	// Language and Timezone are what was chosen with /language and /timezone.
	Language string `json:"language,omitempty"`
	Timezone string `json:"timezone,omitempty"`
	// LanguageAt and TimezoneAt are when.
	LanguageAt claybot.Time `json:"languageAt,omitempty"`
	TimezoneAt claybot.Time `json:"timezoneAt,omitempty"`
	// Locale and Zone are what the platform said last.
	Locale string `json:"locale,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// Name is what the platform calls the person, or the group or channel. Unverified.
	Name string `json:"name,omitempty"`
}

// mannerTime is how long the store may take to say how a person is spoken to.
const mannerTime = 5 * time.Second

// chosenKey and nativeKey are the keys of the checkpoints with what was chosen for an owner, or a
// group as in claybot.Audience.Place, and with what the platform of an owner said last. They are two
// so that neither undoes the other where two members store them at the same time.
func chosenKey(who string) string { return storage.CheckpointVoices + "/" + who }
func nativeKey(who string) string { return storage.CheckpointVoices + "-native/" + who }

// manner reads how a person or a group is spoken to. What cannot be read is unknown: a notice in
// English is better than none.
func (dir *Directory) manner(ctx context.Context, who string) (m manner) {
	if dir.cfg.Marks == nil || who == "" {
		return m
	}
	m, age, ok := dir.manners.get(who)
	if ok {
		return m
	}
	m, err := dir.stored(ctx, chosenKey(who))
	native, fault := dir.stored(ctx, nativeKey(who))
	if err = errors.Join(err, fault); err != nil {
		dir.cfg.Log.Warn("failed to read a language setting", "of", who, "err", err)
		return m
	}
	m.Name = native.Name
	m.Locale, m.Zone = cmp.Or(native.Locale, m.Locale), cmp.Or(native.Zone, m.Zone) // earlier versions stored all in one
	dir.manners.put(who, m, age)
	return m
}

// stored reads a checkpoint; the zero manner where there is none.
func (dir *Directory) stored(ctx context.Context, key string) (m manner, err error) {
	stored, err := dir.cfg.Marks.Checkpoint(ctx, key)
	if err == nil && stored != "" {
		err = json.Unmarshal([]byte(stored), &m)
	}
	return m, err
}

// change stores a changed manner of a person or a group, at one of their keys; it stores nothing
// where fn changes nothing.
func (dir *Directory) change(ctx context.Context, who, key string, fn func(*manner)) error {
	if dir.cfg.Marks == nil || who == "" {
		return nil
	}
	dir.changing.Lock()
	defer dir.changing.Unlock()
	stored, err := dir.cfg.Marks.Checkpoint(ctx, key)
	if err != nil {
		return fmt.Errorf("read the language of %s: %w", who, err)
	}
	var m manner
	if stored != "" {
		_ = json.Unmarshal([]byte(stored), &m) // what is damaged is replaced
	}
	was := m
	if fn(&m); m == was {
		return nil
	}
	b, _ := json.Marshal(m)    // strings always marshal
	defer dir.manners.forget() // also after an error: it may be stored
	if err := dir.cfg.Marks.SetCheckpoint(ctx, key, string(b)); err != nil {
		return fmt.Errorf("store the language of %s: %w", who, err)
	}
	return nil
}

// Learn stores what a platform says of the language, the zone and the name of the person who
// wrote a message, and of the name of its group, for the notices and lists that follow no message.
// It stores only what is new.
func (dir *Directory) Learn(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) {
	if !d.Foreground() {
		return
	}
	if c := m.Context; c.Group {
		dir.learn(ctx, d.Connector+"/"+d.ChannelID, manner{Name: c.Channel})
	}
	dir.learn(ctx, m.Speaker(d), manner{Locale: m.Context.Locale, Zone: m.Context.Timezone, Name: m.From.Name})
}

// learn stores what a platform says of a person or a group.
func (dir *Directory) learn(ctx context.Context, who string, said manner) {
	with := func(m manner) manner {
		m.Locale, m.Zone, m.Name = cmp.Or(said.Locale, m.Locale), cmp.Or(said.Zone, m.Zone), cmp.Or(said.Name, m.Name)
		return m
	}
	if said == (manner{}) {
		return
	}
	if m := dir.manner(ctx, who); m == with(m) {
		return
	}
	err := dir.change(ctx, who, nativeKey(who), func(m *manner) { *m = with(*m) })
	if err != nil {
		dir.cfg.Log.Warn("failed to store what a platform says of a person", "err", err)
	}
}

// NameOf returns how a platform calls a person or a channel, as connector/id; empty if it is
// unknown. A name is unverified, and proves nothing.
func (dir *Directory) NameOf(ctx context.Context, id string) string { return dir.manner(ctx, id).Name }

// manners remembers how people are spoken to, until that changes. What a member of an earlier
// version stores is known here after mannerValid.
type manners struct {
	mu  sync.Mutex
	age int64 // grows with each change
	all map[string]remembered
}

type remembered struct {
	manner
	until time.Time
}

const (
	mannerValid = 5 * time.Minute
	maxManners  = 10_000
)

// ForgetVoices makes the Directory read again how people are spoken to, after another member has
// changed it; see storage.Version.
func (dir *Directory) ForgetVoices() { dir.manners.forget() }

func (l *manners) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.age++
	l.all = nil
}

// get returns what is remembered of a person or a group, and the age that put wants of what is read
// now instead.
func (l *manners) get(who string) (m manner, age int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.all[who]
	return r.manner, l.age, ok && time.Now().Before(r.until)
}

// put remembers what was read, unless it may be older than a change.
func (l *manners) put(who string, m manner, age int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age != l.age {
		return
	}
	if l.all == nil || len(l.all) >= maxManners {
		l.all = make(map[string]remembered)
	}
	l.all[who] = remembered{m, time.Now().Add(mannerValid)}
}

// Voice returns how claybot speaks at a route to the readers of the agent of d; c belongs to the
// message that is answered, if one is.
//
// A person is spoken to in the language that they chose, else in that of their platform, else in
// that of the installation. Their choice holds in all their chats. In a group, which several people
// read, it is the language that was chosen there, else that of the installation. It is the same
// with the zone of times.
func (dir *Directory) Voice(ctx context.Context, d claybot.Descriptor, c claybot.MessageContext, r claybot.Route) texts.Voice {
	return dir.voice(ctx, d, c, r, Choice{})
}

// voice is Voice as if what back names was not chosen.
func (dir *Directory) voice(ctx context.Context, d claybot.Descriptor, c claybot.MessageContext, r claybot.Route, back Choice) texts.Voice {
	v := texts.Voice{Language: texts.English, Zone: time.UTC}
	if at, _ := dir.cfg.Connector(r.Connector).(connectors.Commander); at != nil {
		v.Command = func(name string) string { return at.Command(r, name) }
	}
	if dir.cfg.Zone != nil {
		v.Zone = dir.cfg.Zone()
	}
	if dir.cfg.Language != nil {
		v.Language = dir.cfg.Language()
	}
	if dir.cfg.Replaced != nil {
		v.Replaced = dir.cfg.Replaced()
	}
	named := context.WithoutCancel(ctx)
	v.Name = func(id string) string {
		ctx, cancel := context.WithTimeout(named, mannerTime)
		defer cancel()
		return dir.NameOf(ctx, id)
	}
	languages, zones := dir.wishes(ctx, d, c, r, back)
	for _, l := range languages {
		if l == "" {
			continue
		}
		if l, ok := texts.LanguageOf(l); ok {
			v.Language = l
			break
		}
	}
	if zone := firstZone(zones); zone != nil {
		v.Zone, v.Own = zone, true
	}
	return v
}

// firstZone returns the first of some IANA names that there is; nil for none.
func firstZone(names []string) *time.Location {
	for _, name := range names {
		if name == "" || name == "Local" {
			continue
		}
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	return nil
}

// wishes returns the languages and zones of the readers, the first the most important, but no
// choice of what back names.
func (dir *Directory) wishes(ctx context.Context, d claybot.Descriptor, c claybot.MessageContext, r claybot.Route, back Choice) (languages, zones []string) {
	if place := dir.AudienceOf(d, r).Place; place != "" {
		m := dir.manner(ctx, place).without(back)
		return []string{m.Language}, []string{m.Timezone}
	}
	if d.OwnerID() == "" {
		return nil, nil
	}
	all := make([]manner, 0, 1)
	for _, id := range dir.Identities(d.OwnerID()) {
		m := dir.manner(ctx, id).without(back)
		languages, zones = append(languages, m.Language), append(zones, m.Timezone)
		if all = append(all, m); id == d.OwnerID() { // what their platform says here comes before what another one says
			all[0], all[len(all)-1] = all[len(all)-1], all[0]
		}
	}
	languages, zones = append(languages, c.Locale), append(zones, c.Timezone)
	for _, m := range all {
		languages, zones = append(languages, m.Locale), append(zones, m.Zone)
	}
	return languages, zones
}

// maxLocale bounds a locale that a platform names.
const maxLocale = 35

// LocaleAt returns the language of the readers of an agent at a route, as a locale such as de-AT, and their
// zone; empty where it is unknown. In contrast to Voice, the language need not be one of the catalogue,
// and what holds for the installation alone is left out.
func (dir *Directory) LocaleAt(ctx context.Context, d claybot.Descriptor, c claybot.MessageContext, r claybot.Route) (locale, zone string) {
	ctx, cancel := context.WithTimeout(ctx, mannerTime)
	defer cancel()
	languages, zones := dir.wishes(ctx, d, c, r, Choice{})
	if i := slices.IndexFunc(languages, isLocale); i >= 0 {
		locale = languages[i]
	}
	if found := firstZone(zones); found != nil {
		zone = found.String()
	}
	return locale, zone
}

// isLocale reports whether a text has the form of a locale: letters and digits in parts of up to eight.
func isLocale(text string) bool {
	if text == "" || len(text) > maxLocale {
		return false
	}
	for i, part := range strings.FieldsFunc(text+"-", func(c rune) bool { return c == '-' || c == '_' }) {
		if len(part) > 8 || i == 0 && len(part) < 2 {
			return false
		}
	}
	return strings.Trim(text, "-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// without is m without what back names.
func (m manner) without(back Choice) manner {
	if back.Language != nil {
		m.Language = ""
	}
	if back.Timezone != nil {
		m.Timezone = ""
	}
	return m
}

// Speaking returns a context in which texts.Of returns the Voice of the answer to a message of
// the agent of d.
func (dir *Directory) Speaking(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) context.Context {
	stored := context.WithoutCancel(ctx) // the end of a run that was stopped is told as well
	return texts.With(ctx, sync.OnceValue(func() texts.Voice {
		ctx, cancel := context.WithTimeout(stored, mannerTime)
		defer cancel()
		return dir.Voice(ctx, d, m.Context, m.ReplyRoute(d))
	}))
}

// VoiceAt returns how claybot speaks to the person of a foreground agent outside of an answer.
func (dir *Directory) VoiceAt(ctx context.Context, d claybot.Descriptor, r claybot.Route) texts.Voice {
	return dir.Voice(ctx, d, claybot.MessageContext{}, r)
}

// VoiceOf is VoiceAt for the reader of an outgoing message.
func (dir *Directory) VoiceOf(ctx context.Context, o claybot.Outgoing) texts.Voice {
	return dir.VoiceAt(ctx, claybot.User(o.Route.Connector, o.Route.ChannelID, o.Route.UserID), o.Route)
}

// A Choice is a language or a zone that was chosen at a time with a command: a later one wins. An
// empty one leaves it to the platform and the installation.
type Choice struct {
	Language *texts.Language `json:"language,omitempty"`
	Timezone *string         `json:"timezone,omitempty"` // an IANA name
	At       claybot.Time    `json:"at"`
}

// ByDefault is what people write to leave the language or the zone to the platform.
const ByDefault = "default"

// Chosen returns what /language or /timezone chooses in the conversation of d, and the answer to
// it, in the language that holds from then on; nil where it chooses nothing. It stores nothing.
func (dir *Directory) Chosen(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (*Choice, string) {
	v := texts.Of(ctx)
	word := strings.TrimSpace(m.Text)
	byDefault, c := strings.EqualFold(word, ByDefault), Choice{At: m.At}
	if m.Command == "language" {
		l, ok := texts.LanguageOf(word)
		switch {
		case word == "":
			return nil, v.LanguageNow()
		case !ok && !byDefault:
			return nil, v.NoLanguage(word)
		}
		c.Language, v.Language = &l, l
		if byDefault {
			v.Language = dir.voice(ctx, d, m.Context, m.ReplyRoute(d), c).Language
		}
		return &c, v.LanguageChosen(byDefault)
	}
	zone, ok := ZoneNamed(word)
	name := ""
	switch {
	case word == "":
		return nil, v.TimezoneNow()
	case !ok && !byDefault:
		return nil, v.NoTimezone(word)
	case ok:
		v.Zone, v.Own, name = zone, true, zone.String()
	}
	c.Timezone = &name
	if byDefault {
		without := dir.voice(ctx, d, m.Context, m.ReplyRoute(d), c)
		v.Zone, v.Own = without.Zone, without.Own
	}
	return &c, v.TimezoneChosen(byDefault)
}

// Choose stores a choice that was made in a conversation: for its group, or for all identities of
// its person. It is idempotent, and an older choice than the stored one changes nothing.
func (dir *Directory) Choose(ctx context.Context, d claybot.Descriptor, c Choice) error {
	who := dir.Identities(d.OwnerID())
	if place := dir.AudienceOf(d, claybot.Route{}).Place; place != "" {
		who = []string{place}
	}
	for _, id := range who {
		err := dir.change(ctx, id, chosenKey(id), func(m *manner) {
			if c.Language != nil && c.At >= m.LanguageAt {
				m.Language, m.LanguageAt = string(*c.Language), c.At
			}
			if c.Timezone != nil && c.At >= m.TimezoneAt {
				m.Timezone, m.TimezoneAt = *c.Timezone, c.At
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ZoneNamed returns the zone of an IANA name such as europe/berlin, in any case.
func ZoneNamed(name string) (*time.Location, bool) {
	if name == "" || strings.EqualFold(name, "local") || len(name) > 64 {
		return nil, false
	}
	parts := strings.FieldsFunc(strings.ReplaceAll(name, " ", "_"), func(r rune) bool { return r == '/' })
	for _, form := range []string{name, strings.ToUpper(name), titled(strings.Join(parts, "/"))} {
		if zone, err := time.LoadLocation(form); err == nil {
			return zone, true
		}
	}
	return nil, false
}

// titled writes the words of a name with capitals, as America/New_York.
func titled(name string) string {
	b := []byte(strings.ToLower(name))
	for i := range b {
		if (i == 0 || b[i-1] == '/' || b[i-1] == '_' || b[i-1] == '-') && b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
