package storage

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// What is the same in every implementation of Agents.

const (
	// TextLimit is the longest text file that is kept as a text, in bytes.
	TextLimit = 64 << 10
	// fileNameLimit is the longest name of a file, in bytes.
	fileNameLimit = 120
)

// DefaultEngine is the engine of an agent that names none.
const DefaultEngine = "react"

// CheckDescriptor refuses what could not be found again: an empty id, or one
// that JSON would change.
func CheckDescriptor(d claybot.Descriptor) error {
	user, sub := d.Type == claybot.AgentUser, d.Type == claybot.AgentSubagent
	parts := []struct {
		name, value string
		needed      bool
	}{
		{"type", string(d.Type), true},
		{"connector", d.Connector, user},
		{"channelId", d.ChannelID, user},
		{"userId", d.UserID, user},
		{"uid", d.UID, sub || d.Type == claybot.AgentCron},
		{"parent", string(d.Parent), sub},
		{"name", d.Name, false},
		{"owner", d.Owner, false},
		{"root", string(d.Root), false},
		{"profile", d.Profile, false},
	}
	for _, p := range parts {
		if p.value == "" && p.needed {
			return fmt.Errorf("descriptor: %s is empty", p.name)
		}
		if !utf8.ValidString(p.value) {
			return fmt.Errorf("descriptor: %s %.80q is not UTF-8", p.name, p.value)
		}
	}
	return nil
}

// Renamed is the descriptor of an agent that has had old and is now asked for
// as d: a background agent takes over the name and owner, a moved one the
// identity. What a subagent was born with stays.
func Renamed(old, d claybot.Descriptor) claybot.Descriptor {
	r := d.Identity()
	r.Name, r.Owner, r.Root, r.Depth, r.Profile = old.Name, old.Owner, old.Root, old.Depth, old.Profile
	if !d.Foreground() {
		r.Name, r.Owner = d.Name, d.Owner
	}
	return r
}

// NewState is the state of an agent made at created.
func NewState(created claybot.Time) claybot.AgentState {
	now := claybot.Now()
	if created == 0 {
		created = now
	}
	return claybot.AgentState{Engine: DefaultEngine, CreatedAt: created, UpdatedAt: now}
}

// Summarized is what is remembered of records once summary is appended to them.
func Summarized(records []claybot.Record, summary claybot.Record) []claybot.Record {
	kept := slices.DeleteFunc(slices.Clone(records), func(r claybot.Record) bool { return r.Type == claybot.RecordSummary })
	kept = kept[len(kept)-min(max(summary.Keep, 0), len(kept)):]
	return append(slices.Clone(kept), summary) // a copy: the folded ones are let go
}

// nameLimit is the longest call that is a file name as it is.
const nameLimit = 64

// ResultName is the file name for a call id, which a model made up. One that
// is not a plain word gets its hash; the dot keeps the two kinds apart.
func ResultName(call string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return -1
	}, call)
	if plain == call && plain != "" && len(plain) <= nameLimit {
		return plain + ".txt"
	}
	if plain == "" {
		plain = "call"
	}
	return fmt.Sprintf("%s.%x.txt", plain[:min(len(plain), nameLimit/2)], sha256.Sum256([]byte(call)))
}

// FileName makes a name harmless that somebody else gave: no folders, no
// control characters, no leading dots, at most fileNameLimit bytes.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) { // also those that turn the direction of writing
			return -1
		}
		return c
	}, name)
	name = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(name), "."))
	for len(name) > fileNameLimit {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "file"
	}
	return name
}

// PlainText reports text that a model can read.
func PlainText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, c := range string(data) {
		if unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return len(data) > 0
}
