package webchat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// textLimit is the longest message in characters.
	textLimit = 100_000
	// bodyLimit is the largest request in bytes.
	bodyLimit = 1 << 20
	// The lengths of a transcript.
	transcriptDefault = 100
	transcriptLimit   = 500
	// home is the conversation of who names none.
	home = "main"
)

// A problem is an error that the person who asked can read.
type problem struct {
	status  int
	code    string
	message string
}

func (p *problem) Error() string { return p.message }

var (
	errLogin   = &problem{http.StatusUnauthorized, "login", "Log in first."}
	errStopped = &problem{http.StatusServiceUnavailable, "not_ready", "The chat is starting or stopping. Try again in a moment."}
	errStore   = &problem{http.StatusServiceUnavailable, "not_stored", "The message could not be stored. Nothing was lost: send it again in a moment."}
	errFull    = &problem{http.StatusServiceUnavailable, "disk_full", "The message could not be stored: the data directory is full or read-only. Send it again when there is space."}
	errRead    = &problem{http.StatusServiceUnavailable, "not_readable", "The conversation could not be read. Try again in a moment."}
)

func bad(message string) *problem {
	return &problem{http.StatusBadRequest, "bad_request", message}
}

// Handler serves the chat:
//
//	POST messages    {id?, text, conversation?} → 202 {messageId, at}
//	GET  transcript  ?conversation=&limit=      → {entries, after}
//	GET  stream      ?conversation=&after=      → Server-Sent Events
//
// The paths are relative to where it is mounted (http.StripPrefix). user says
// who asks: an empty name is nobody and gets 401. The caller is responsible
// for the login and for refusing foreign origins.
func (c *Chat) Handler(t Transcripts, user func(*http.Request) string) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, fn func(http.ResponseWriter, *http.Request, claybot.Descriptor) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d, err := c.descriptor(r, user(r))
			if err == nil {
				err = fn(w, r, d)
			}
			c.fail(w, r, err)
		})
	}
	handle("POST /messages", c.post)
	handle("GET /transcript", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.transcript(w, r, d, t)
	})
	handle("GET /stream", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.stream(w, r, d, t)
	})
	return mux
}

// descriptor says whose conversation a request is about.
func (c *Chat) descriptor(r *http.Request, login string) (claybot.Descriptor, error) {
	if login == "" {
		return claybot.Descriptor{}, errLogin
	}
	conversation := r.URL.Query().Get("conversation")
	if conversation == "" {
		conversation = home
	}
	if !validID(conversation) {
		return claybot.Descriptor{}, bad("The conversation must be 1 to 64 letters, digits, - or _.")
	}
	return claybot.User(c.name, conversation, login), nil
}

// post takes one message in.
func (c *Chat) post(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
	var in struct {
		ID           string `json:"id"`
		Text         string `json:"text"`
		Conversation string `json:"conversation"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Conversation != "" {
		d.ChannelID = in.Conversation
	}
	if in.ID == "" {
		in.ID = rand.Text()
	}
	if !validID(in.ID) || !validID(d.ChannelID) {
		return bad("The id and the conversation must be 1 to 64 letters, digits, - or _.")
	}
	text := clean(in.Text)
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return bad("The message is empty.")
	case n > textLimit:
		return bad("The message has " + strconv.Itoa(n) + " characters; at most " + strconv.Itoa(textLimit) + " are taken. Send it in parts.")
	}
	m, _ := connectors.Interpret(claybot.Message{
		ID:      claybot.MessageID(c.name + "/" + d.ChannelID + "/" + in.ID),
		Type:    claybot.MessageUser,
		Text:    text,
		From:    claybot.Sender{UserID: d.UserID},
		Context: claybot.MessageContext{MessageID: in.ID},
		At:      claybot.Now(),
	}, "/", "") // there is no other bot in a chat of our own
	if err := c.take(r.Context(), d, m); err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]any{"messageId": m.ID, "at": m.At})
	return nil
}

// take gives a message to the handler and returns when it is durable.
func (c *Chat) take(ctx context.Context, d claybot.Descriptor, m claybot.Message) error {
	h, leave, ok := c.gate.enter()
	if !ok {
		return errStopped
	}
	defer leave()
	next, err := c.lanes.enter(ctx, topic{d.ChannelID, d.UserID})
	if err != nil {
		return errStopped // the client is gone and will not read it
	}
	defer next()
	if err := h.Post(ctx, d, m); err != nil {
		c.log.Warn("message not stored", "message", m.ID, "err", err)
		if errors.Is(err, storage.ErrFull) {
			return errFull
		}
		return errStore
	}
	c.pulse.OK()
	return nil
}

// transcript answers with the newest lines of a conversation, and with the
// position after which a stream goes on.
func (c *Chat) transcript(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts) error {
	limit := transcriptDefault
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return bad("limit must be a number from 1.")
		}
		limit = min(n, transcriptLimit)
	}
	if !c.gate.begun() {
		return errStopped
	}
	// The position is read first: what comes in between is left to the stream.
	after, err := t.LastN(r.Context(), d)
	if err != nil {
		c.log.Warn("position not read", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	entries, err := t.Transcript(r.Context(), d, limit)
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // nobody has written yet
		c.log.Warn("transcript not read", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	out := album{lines: make([]line, 0, len(entries))}
	shown := make(map[claybot.MessageID]bool) // with the command that they followed
	for _, e := range entries {
		switch {
		case e.Message != nil && shown[e.Message.ID]:
		case e.Message != nil:
			shown[e.Message.FollowUp().ID] = e.Message.Type == claybot.MessageReset
			u := userView(*e.Message)
			out.lines = append(out.lines, line{User: &u})
		case e.Outgoing != nil && e.Outgoing.N <= after && ours(d, *e.Outgoing):
			out.add(c.saidView(*e.Outgoing))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"entries": out.lines, "after": after})
	return nil
}

// ours reports whether o is for the person of d. The outbox orders by channel,
// and two people may have given their conversations the same name.
func ours(d claybot.Descriptor, o claybot.Outgoing) bool {
	return o.Route.UserID == "" || o.Route.UserID == d.UserID
}

// fail answers with err in words, if there is one.
func (c *Chat) fail(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		return
	}
	var p *problem
	if !errors.As(err, &p) {
		c.log.Debug("stream ended", "path", r.URL.Path, "err", err)
		return
	}
	writeJSON(w, p.status, map[string]any{"error": map[string]string{"code": p.code, "message": p.message}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

// decode reads one JSON object; unknown fields are errors.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	var big *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &big):
		return &problem{http.StatusRequestEntityTooLarge, "too_large", "The request is larger than 1 MiB."}
	default:
		return bad("The request is not the JSON object that is expected here: {\"text\": \"…\"}.")
	}
}

// clean repairs what no message may carry: invalid UTF-8 and NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// validID reports whether s may be a part of a message id: no separator, no
// surprise, not long.
func validID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			continue
		}
		return false
	}
	return true
}
