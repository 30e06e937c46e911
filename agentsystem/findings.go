package agentsystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// findingsKey is the mark of what operators know of the findings, and the claim of the member
	// that tells them.
	findingsKey = "notice/findings"
	// seenEvery is how often a member stores that a finding is still there, and seenFor how long
	// others believe that.
	seenEvery = 10 * time.Minute
	seenFor   = 25 * time.Minute
	// goneAfter is how long a finding is remembered of a part of which nothing is known any more.
	goneAfter = 24 * time.Hour
)

// A knownFindings is what operators know of the findings, as its mark. The next notice is stored
// before it is sent, so that a crash in between neither repeats nor changes it.
type knownFindings struct {
	Parts map[string]knownFinding `json:"parts"`
	Sent  int                     `json:"sent"` // notices: makes the key of the next one new
	Due   []dueFinding            `json:"due,omitempty"`
	Form  int                     `json:"form,omitempty"` // of the names and codes; see stored
}

// A knownFinding is what operators know of one part.
type knownFinding struct {
	Open string                  `json:"open,omitempty"` // the code they know; empty: that it works
	Told map[string]claybot.Time `json:"told"`           // when they were told last, by code
	Seen claybot.Time            `json:"seen"`           // when a member saw it last
	By   string                  `json:"by"`             // that member
}

// A dueFinding is a part of a notice: what is wrong, or with an empty code, that it is over.
type dueFinding struct {
	What  string     `json:"what"`
	Code  string     `json:"code,omitempty"`
	Part  texts.Part `json:"part"`
	Means string     `json:"means,omitempty"`
	Text  string     `json:"text,omitempty"`
	Next  string     `json:"next,omitempty"`
}

// Findings tell operators what is wrong of all that overview finds.
type findings struct {
	people  *people.Directory
	marks   storage.CheckpointSet // nil: nothing is told
	members *cluster.Membership
	find    func(context.Context) ([]overview.Finding, error)
	log     *slog.Logger

	mu     sync.Mutex        // held while they are looked at
	seen   map[string]string // the codes of the last look, by what they are about
	untold bool              // there was no operator to tell at the last look
}

// look tells operators of the findings that they do not know, all in one notice and each cause once
// an hour at most, and of those that are over. A cause is told from the second look on that finds it.
func (f *findings) look(ctx context.Context) {
	if f.marks == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.find(ctx)
	if err == nil {
		err = f.tell(ctx, f.lasting(all))
	}
	if err != nil && ctx.Err() == nil {
		f.log.Warn("failed to tell operators what is wrong, retrying", "err", err)
	}
}

// lasting returns the findings that may be told now: those of the last look as well, and what works.
func (f *findings) lasting(all []overview.Finding) []overview.Finding {
	last := f.seen
	f.seen = make(map[string]string)
	var lasting []overview.Finding
	for _, x := range all {
		if x.Level == overview.LevelOK {
			lasting = append(lasting, x)
			continue
		}
		if f.seen[x.What] = x.Code; x.Means != "" && last[x.What] == x.Code {
			lasting = append(lasting, x)
		}
	}
	return lasting
}

// tell tells operators what they do not know of findings, unless another member does just now.
func (f *findings) tell(ctx context.Context, all []overview.Finding) (err error) {
	hold, err := f.members.Claim(ctx, findingsKey)
	if errors.Is(err, storage.ErrHeld) {
		return nil
	} else if err != nil {
		return fmt.Errorf("claim the findings: %w", err)
	}
	defer func() { err = errors.Join(err, hold.Yield(ctx, false)) }()
	text, err := f.marks.Checkpoint(ctx, findingsKey)
	if err != nil {
		return err
	}
	known := stored(text)
	if len(known.Due) == 0 || f.untold {
		if known.decide(all, f.members.Name(), f.members.Others() == 0, time.Now()); known.text() != text && (text != "" || len(known.Due) > 0) {
			err = f.marks.SetCheckpoint(ctx, findingsKey, known.text())
		}
		if err != nil || len(known.Due) == 0 {
			return err
		}
	}
	told, err := f.people.TellOperators(ctx, fmt.Sprintf("findings/%d", known.Sent), nil, known.say)
	if f.untold = err == nil && told == 0; err != nil || told == 0 {
		return err
	}
	known.settle(f.members.Name(), time.Now())
	return f.marks.SetCheckpoint(ctx, findingsKey, known.text())
}

// anyFault is the open code of a part of which an earlier version had told a fault whose code is another one now.
const anyFault = "any"

// stored returns what a mark says. Without a form, it is of a version of November 2026 or earlier: relays were sinks,
// and checks that find damage had no codes of their own. Without the present names, operators would read of the same
// fault twice and never that it is over.
func stored(text string) knownFindings {
	k := knownFindings{}
	if text != "" {
		_ = json.Unmarshal([]byte(text), &k) // what is damaged is replaced
	}
	parts := make(map[string]knownFinding)
	for what, p := range k.Parts {
		if k.Form == 0 {
			p.Open = cmp.Or(map[string]string{"sink-failing": "relay-failing", "check-failing": anyFault}[p.Open], p.Open)
			if at, told := p.Told["sink-failing"]; told {
				p.Told["relay-failing"] = at
				delete(p.Told, "sink-failing")
			}
		}
		if _, both := k.Parts[relayOf(what)]; !both || relayOf(what) == what { // the present name counts
			parts[relayOf(what)] = p
		}
	}
	for i, d := range k.Due {
		if k.Form == 0 && relayOf(d.What) != d.What {
			d.What, d.Part.Kind = relayOf(d.What), texts.PartRelay
			d.Code = strings.Replace(d.Code, "sink-failing", "relay-failing", 1)
			k.Due[i] = d
		}
	}
	k.Parts, k.Form = parts, 1
	return k
}

// relayOf is the present name of a part that an earlier version may have called a sink.
func relayOf(what string) string {
	if name, sink := strings.CutPrefix(what, "sink "); sink {
		return "relay " + name
	}
	return what
}

func (k knownFindings) text() string {
	b, _ := json.Marshal(k) // strings and numbers always encode
	return string(b)
}

// decide determines the next notice, in place of one that was sent to no operator. What another
// member saw lately is not over because it works here, unless this one is alone.
func (k *knownFindings) decide(all []overview.Finding, member string, alone bool, now time.Time) {
	unsent := len(k.Due) > 0
	k.Due = nil
	there := make(map[string]bool)
	for _, f := range all {
		what := f.What
		if f.Part.Kind == texts.PartDisk { // each member has one
			what += " of " + f.Part.Name
			if alone {
				k.takeDisk(what, f, member, now)
			}
		}
		there[what] = true
		p := k.Parts[what]
		switch {
		case f.Level == overview.LevelOK:
			if p.Open != "" && (alone || p.By == member || now.Sub(p.Seen.Time()) > seenFor) {
				k.Due = append(k.Due, dueFinding{What: what, Part: f.Part})
			}
		case p.Open == f.Code || p.Open == anyFault:
			if p.Open != f.Code || now.Sub(p.Seen.Time()) > seenEvery {
				p.Open, p.Seen, p.By = f.Code, claybot.At(now), member
				k.Parts[what] = p
			}
		case now.Sub(p.Told[f.Code].Time()) >= troubleEvery:
			k.Due = append(k.Due, dueFinding{what, f.Code, f.Part, f.Means, f.Text, f.Next})
		}
	}
	maps.DeleteFunc(k.Parts, func(what string, p knownFinding) bool {
		return p.Open == "" && p.quiet(now) || !there[what] && now.Sub(p.Seen.Time()) > goneAfter
	})
	slices.SortFunc(k.Due, func(a, b dueFinding) int { return strings.Compare(a.What, b.What) })
	if len(k.Due) > 0 && !unsent {
		k.Sent++
	}
}

// takeDisk makes what operators know of the disks of other names that of the disk of a member that is alone: it had
// another name before, as a container has that is made anew, or the others are gone. Room is not taken for theirs
// while they may be back, as after a restart. In a cluster, the disk of a member that is gone is forgotten after goneAfter.
func (k *knownFindings) takeDisk(own string, f overview.Finding, member string, now time.Time) {
	for _, what := range slices.Sorted(maps.Keys(k.Parts)) {
		p := k.Parts[what]
		if what == own || !strings.HasPrefix(what, f.What+" of ") || f.Level == overview.LevelOK && now.Sub(p.Seen.Time()) <= seenFor {
			continue
		}
		if delete(k.Parts, what); p.Open != "" && k.Parts[own].Open == "" {
			p.By = member
			k.Parts[own] = p
		}
	}
}

// quiet reports whether operators got no notice about the part within the last hour.
func (p knownFinding) quiet(now time.Time) bool {
	for _, at := range p.Told {
		if now.Sub(at.Time()) < troubleEvery {
			return false
		}
	}
	return true
}

// settle notes that operators have the notice.
func (k *knownFindings) settle(member string, now time.Time) {
	for _, d := range k.Due {
		p := k.Parts[d.What]
		if p.Open = d.Code; d.Code != "" {
			if p.Told == nil {
				p.Told = make(map[string]claybot.Time)
			}
			p.Told[d.Code], p.Seen, p.By = claybot.At(now), claybot.At(now), member
		}
		k.Parts[d.What] = p
	}
	k.Due = nil
}

// say is the notice.
func (k knownFindings) say(v texts.Voice) string {
	var all []string
	for _, d := range k.Due {
		if d.Code == "" {
			all = append(all, v.FindingOver(d.Part))
			continue
		}
		all = append(all, v.FindingTold(d.Part, d.Means, d.Text, d.Next))
	}
	return strings.Join(all, "\n\n")
}
