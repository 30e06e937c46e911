package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// askedPrefix begins the keys of checkpoints with the last request for access of a person, by
	// connector/userId.
	askedPrefix = storage.CheckpointAsked
	// askedCount is the key of the checkpoint that counts notices of requests to operators.
	askedCount = storage.CheckpointRepeats + "asked"
	// askedKept is how long a request is known after its last change, and ignoredFor how long
	// operators are not notified of a person whom they ignore.
	askedKept  = 7 * 24 * time.Hour
	ignoredFor = 30 * 24 * time.Hour
	// askedMost is how many requests operators are notified of within askedWindow. One more
	// notice says that there are more.
	askedMost   = 5
	askedWindow = time.Hour
)

// A Verdict is what an operator decided about a request for access.
type Verdict string

// The verdicts. An undecided request has none.
const (
	VerdictApproved Verdict = "approved"
	VerdictDenied   Verdict = "denied"
	VerdictIgnored  Verdict = "ignored" // denied, and operators get no notice of the next requests
)

// A Request is the last request for access of a person, of which operators were notified or which
// they decided.
type Request struct {
	Code      string       `json:"code"`
	Earlier   string       `json:"earlier,omitempty"` // the code of the request before
	Connector string       `json:"connector"`
	UserID    string       `json:"userId"`
	Name      string       `json:"name,omitempty"`
	Verdict   Verdict      `json:"verdict,omitempty"`
	At        claybot.Time `json:"at"`                // of the verdict, or else of the request
	Refused   claybot.Time `json:"refused,omitempty"` // the last denial, also before an approval; 0 for none
}

// ignored reports whether operators do not want to hear of the person.
func (r Request) ignored() bool {
	return r.Verdict == VerdictIgnored && time.Since(r.At.Time()) < ignoredFor
}

// earlier returns the code before a new one.
func (r Request) earlier(code string) string {
	if r.Code == code {
		return r.Earlier
	}
	return r.Code
}

// Challenge answers a message of an unknown user, as Gate.Challenge does. The operators are
// notified of a new request in the same commit.
func (dir *Directory) Challenge(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) ([]claybot.Outgoing, error) {
	return dir.Gate.Challenge(ctx, d, m, dir)
}

// noticed reports whether operators were notified of an open request: there are few of them, see
// askedMost.
func (dir *Directory) noticed(ctx context.Context, p storage.Pairing) (bool, error) {
	if dir.cfg.Marks == nil {
		return false, nil
	}
	r, _, err := dir.request(ctx, p.Connector, p.UserID)
	return r.Code == p.Code && r.Verdict == "", err
}

// announcement returns the notices to operators of a new request: none of a person whom they
// ignore, and a few within an hour, of which the last says that there are more. A fault takes
// the notices away, not the request.
func (dir *Directory) announcement(ctx context.Context, p storage.Pairing) []claybot.Outgoing {
	out, err := dir.announce(ctx, p)
	if err != nil {
		dir.cfg.Log.Warn("failed to notify operators of a request for access", "connector", p.Connector, "user", p.UserID, "err", err)
		return nil
	}
	return out
}

func (dir *Directory) announce(ctx context.Context, p storage.Pairing) ([]claybot.Outgoing, error) {
	if dir.cfg.Marks == nil {
		return nil, nil
	}
	before, _, err := dir.request(ctx, p.Connector, p.UserID)
	if err != nil || before.ignored() {
		return nil, err
	}
	since, n, err := dir.announced(ctx, p.At)
	if err != nil || n > askedMost {
		return nil, err
	}
	key := fmt.Sprintf("access/%s/%s/%d", p.Connector, p.UserID, p.At)
	say := func(v texts.Voice) (string, []claybot.Offer) { return v.AccessAsked(p), decisions(v, p.Code) }
	if n == askedMost {
		key = fmt.Sprintf("access/more/%d", since)
		say = func(v texts.Voice) (string, []claybot.Offer) { return v.In(texts.AccessMore), nil }
	}
	out, err := dir.toOperators(ctx, key, say)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	if err := dir.keep(ctx, askedCount, strconv.Itoa(n+1), since); err != nil || n == askedMost {
		return out, err
	}
	return out, dir.note(ctx, p, "", before)
}

// decisions are the buttons below a notice of a request: the commands of an operator.
func decisions(v texts.Voice, code string) []claybot.Offer {
	return []claybot.Offer{
		{Label: v.In(texts.LabelApprove), Command: "/pair approve " + code},
		{Label: v.In(texts.LabelDeny), Command: "/pair deny " + code},
		{Label: v.In(texts.IgnoreButton), Command: "/pair ignore " + code},
	}
}

// announced returns how many requests operators were notified of in the hour of a request, and
// when that hour began.
func (dir *Directory) announced(ctx context.Context, at claybot.Time) (since claybot.Time, n int, err error) {
	stored, err := dir.cfg.Marks.Checkpoint(ctx, askedCount)
	if err != nil {
		return 0, 0, err
	}
	kept, value := dated(stored)
	if kept == 0 || at.Time().Sub(kept.Time()) >= askedWindow || at < kept {
		return at, 0, nil
	}
	n, err = strconv.Atoi(value)
	return kept, n, err
}

// toOperators returns a notice to each operator in a conversation which they alone read, on a
// connector that works; the notice is sent once for each key. It stores nothing.
func (dir *Directory) toOperators(ctx context.Context, key string, say func(texts.Voice) (string, []claybot.Offer)) (all []claybot.Outgoing, err error) {
	told := make(map[claybot.AgentID]bool)
	for _, owner := range dir.operators() {
		e, to, err := dir.operator(ctx, owner)
		if err != nil {
			return nil, err
		}
		if to.Connector == "" || told[e.ID] {
			continue
		}
		told[e.ID] = true
		text, offers := say(dir.VoiceAt(ctx, e.Descriptor, to))
		out := dir.cfg.Sender.ComposeOnce(claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: e.ID, Route: to}, key+"/"+string(e.ID), text)
		if len(out) > 0 {
			out[len(out)-1].Offer = offers
		}
		all = append(all, out...)
	}
	return all, nil
}

// DecidedRequest returns the request that had a code, once that is no longer open, with what became of
// it; ok is false for an open code, and for one that is not known.
func (dir *Directory) DecidedRequest(ctx context.Context, code string) (r Request, ok bool, err error) {
	code = strings.ToUpper(strings.TrimSpace(code))
	if dir.cfg.Marks == nil || len(code) != codeLength {
		return r, false, nil
	}
	open, err := dir.Gate.pairings(ctx)
	if err != nil || slices.ContainsFunc(open, func(p storage.Pairing) bool { return p.Code == code }) {
		return r, false, err
	}
	all, err := dir.cfg.Marks.ListCheckpoints(ctx, askedPrefix)
	if err != nil {
		return r, false, err
	}
	for _, c := range all {
		_, value := dated(c.Value)
		r = Request{}
		if json.Unmarshal([]byte(value), &r) == nil && (r.Code == code || r.Earlier == code) {
			if r.Code != code {
				r.Verdict = ""
			}
			if r.Verdict == "" && dir.Knows(r.Connector, r.UserID) {
				r.Verdict = VerdictApproved
			}
			return r, true, nil
		}
	}
	return Request{}, false, nil
}

// NoteApproved notes that a request of which operators were notified led to a grant. It is called
// after the grant: until then the request is open, whatever is noted.
func (dir *Directory) NoteApproved(ctx context.Context, g storage.Grant) {
	if dir.cfg.Marks == nil {
		return
	}
	r, known, err := dir.request(ctx, g.Connector, g.Subject)
	if err == nil && known {
		err = dir.note(ctx, storage.Pairing{Code: r.Code, Connector: r.Connector, UserID: r.UserID, Name: r.Name}, VerdictApproved, r)
	}
	if err != nil { // what DecidedRequest says has another time then
		dir.cfg.Log.Warn("failed to note the approval of a request for access", "connector", g.Connector, "user", g.Subject, "err", err)
	}
}

// note stores a request, and what was decided about it, in place of the one before.
func (dir *Directory) note(ctx context.Context, p storage.Pairing, v Verdict, before Request) error {
	x, err := noted(p, v, before)
	if err != nil {
		return err
	}
	return dir.cfg.Marks.SetCheckpoint(ctx, x.Key, x.Value)
}

// noted returns what note stores.
func noted(p storage.Pairing, v Verdict, before Request) (storage.Checkpoint, error) {
	r, until := Request{Code: p.Code, Earlier: before.earlier(p.Code), Refused: before.Refused, Connector: p.Connector, UserID: p.UserID, Name: p.Name, Verdict: v, At: p.At}, askedKept
	if v != "" {
		r.At = claybot.Now()
	}
	if v == VerdictDenied || v == VerdictIgnored {
		r.Refused = r.At
	}
	if v == VerdictIgnored {
		until = ignoredFor
	}
	value, err := json.Marshal(r)
	return storage.Checkpoint{Key: askedPrefix + p.Connector + "/" + p.UserID, Value: dating(claybot.At(r.At.Time().Add(until)), string(value))}, err
}

// request returns the last request of a person that is known.
func (dir *Directory) request(ctx context.Context, connector, user string) (r Request, known bool, err error) {
	stored, err := dir.cfg.Marks.Checkpoint(ctx, askedPrefix+connector+"/"+user)
	if err != nil || stored == "" {
		return r, false, err
	}
	_, value := dated(stored)
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Request{}, false, nil // damaged: as if it were not known
	}
	return r, true, nil
}

// Asks reports whether a person without access has an open request which operators do not ignore.
func (dir *Directory) Asks(ctx context.Context, connector, user string) (bool, error) {
	open, err := dir.Gate.pairings(ctx)
	if err != nil || !slices.ContainsFunc(open, func(p storage.Pairing) bool { return p.Connector == connector && p.UserID == user }) {
		return false, err
	}
	if dir.cfg.Marks == nil {
		return true, nil
	}
	r, _, err := dir.request(ctx, connector, user)
	return err == nil && !r.ignored(), err
}

// Refresh loads the grants where another member may have given the sender of a text in a direct chat access:
// they asked for it, and their request is not open any more, nor was it denied.
func (dir *Directory) Refresh(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageUser || m.Command != "" || m.Context.Group || m.From.Bot || dir.cfg.Marks == nil {
		return nil
	}
	r, known, err := dir.request(ctx, d.Connector, d.UserID)
	if err != nil || r.Verdict == VerdictDenied || r.Verdict == VerdictIgnored || !known && !dir.toldLately(subject{d.Connector, d.UserID}) {
		return err
	}
	if asks, err := dir.Asks(ctx, d.Connector, d.UserID); err != nil || asks {
		return err
	}
	return dir.Load(ctx)
}

// RefusedSince reports whether an operator denied the request of a person at a time or later, also
// where they have access since.
func (dir *Directory) RefusedSince(ctx context.Context, connector, user string, since claybot.Time) (bool, error) {
	if dir.cfg.Marks == nil {
		return false, nil
	}
	r, _, err := dir.request(ctx, connector, user)
	return r.Refused != 0 && r.Refused >= since, err
}

// keep stores a checkpoint that is removed a day after a time.
func (dir *Directory) keep(ctx context.Context, key, value string, until claybot.Time) error {
	return dir.cfg.Marks.SetCheckpoint(ctx, key, dating(until, value))
}

// dating is the opposite of dated.
func dating(until claybot.Time, value string) string { return fmt.Sprintf("%013d%s", until, value) }

// dated splits what keep stored; the time is 0 where there is none.
func dated(stored string) (at claybot.Time, value string) {
	const digits = 13
	if len(stored) < digits {
		return 0, ""
	}
	n, err := strconv.ParseInt(stored[:digits], 10, 64)
	if err != nil {
		return 0, ""
	}
	return claybot.Time(n), stored[digits:]
}

// Refuse removes the request with a code, as denied or as ignored: then operators get no notice of
// what its person asks within the next month. The person gets no notice.
func (dir *Directory) Refuse(ctx context.Context, code string, v Verdict) (storage.Pairing, error) {
	p, err := dir.Gate.find(ctx, code)
	if err != nil {
		return p, err
	}
	var notes []storage.Checkpoint
	if dir.cfg.Marks != nil {
		before, _, err := dir.request(ctx, p.Connector, p.UserID)
		if err != nil {
			return p, err
		}
		x, err := noted(p, v, before)
		if err != nil {
			return p, err
		}
		notes = append(notes, x)
	}
	err = dir.Gate.store.DropPairing(ctx, p.Code, notes...) // at once: what another operator approved is not denied
	if errors.Is(err, storage.ErrNotFound) {                // another operator was faster
		return p, ErrBadCode
	}
	return p, err
}
