package webchat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// textLimit is the maximum length of a message in characters.
	textLimit = 100_000
	// bodyLimit is the maximum size of a request body in bytes.
	bodyLimit = 1 << 20
	// home is the default conversation.
	home = "main"
	// owner is web.Operator, the only user before tokens existed. Message ids
	// of this user have no user part.
	owner = "operator"
)

// A problem is an error with a text for the client.
type problem struct {
	status  int
	code    string
	message string
}

func (p *problem) Error() string { return p.message }

var (
	errLogin      = &problem{http.StatusUnauthorized, "login", "Log in first."}
	errStopped    = &problem{http.StatusServiceUnavailable, "not_ready", "The chat is starting or stopping. Try again in a moment."}
	errStore      = &problem{http.StatusServiceUnavailable, "not_stored", "The message could not be stored. Nothing was lost: send it again in a moment."}
	errFull       = &problem{http.StatusServiceUnavailable, "disk_full", "The message could not be stored: the data directory is full or read-only. Send it again when there is space."}
	errUnstorable = &problem{http.StatusUnprocessableEntity, "cannot_be_stored", "The message cannot be stored, and a retry would fail. Change it and send it again."}

	errID   = bad("The id and the conversation must be 1 to 64 letters, digits, - or _.")
	errRead = &problem{http.StatusServiceUnavailable, "not_readable", "The conversation cannot be read right now, and nothing was stored. Try again in a moment."}
)

func bad(message string) *problem {
	return &problem{http.StatusBadRequest, "bad_request", message}
}

// Handler serves the chat:
//
//	POST messages    {id?, text, files?, conversation?} → 202 {messageId, at}
//	PATCH messages/{id}   ?conversation=, {id?, text}   → 202, the message
//	DELETE messages/{id}  ?conversation=                → 202, the message
//	POST files       ?conversation=&name=, the bytes  → 201 {id, name, …}
//	GET  files/{id}  ?conversation=             → the bytes
//	GET  transcript  ?conversation=&limit=      → {entries, after}
//	GET  stream      ?conversation=&after=      → Server-Sent Events
//
// The paths are relative to where it is mounted (http.StripPrefix). user
// returns the authenticated user; an empty name gets 401. The caller is
// responsible for authentication and for rejecting foreign origins.
func (c *Chat) Handler(t Transcripts, files Files, user func(*http.Request) string) http.Handler {
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
	handle("POST /messages", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.post(w, r, d, files)
	})
	handle("PATCH /messages/{id}", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.edit(w, r, d, t)
	})
	handle("DELETE /messages/{id}", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.remove(w, r, d, t)
	})
	handle("POST /files", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.upload(w, r, d, files)
	})
	handle("GET /files/{id}", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.download(w, r, d, files)
	})
	handle("GET /transcript", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.transcript(w, r, d, t)
	})
	handle("GET /stream", func(w http.ResponseWriter, r *http.Request, d claybot.Descriptor) error {
		return c.stream(w, r, d, t)
	})
	return mux
}

// descriptor returns the conversation of a request.
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

// post accepts one message.
func (c *Chat) post(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, kept Files) error {
	var in struct {
		ID           string   `json:"id"`
		Text         string   `json:"text"`
		Files        []string `json:"files"` // ids of uploads
		Conversation string   `json:"conversation"`
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
		return errID
	}
	text, err := readable(in.Text)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(text) == "" && len(in.Files) == 0:
		return bad("The message is empty.")
	}
	files, err := attached(r.Context(), d, kept, in.Files) // of this conversation only
	if err != nil {
		return err
	}
	m, _ := connectors.Interpret(claybot.AgentMessage{
		Files:   files,
		Tainted: len(files) > 0, // file contents are untrusted
		ID:      c.messageID(d, in.ID),
		Type:    claybot.MessageUser,
		Text:    text, FirstHand: true, // the page and the terminal have no other texts
		From:    c.sender(r, d),
		Context: claybot.MessageContext{MessageID: in.ID},
		At:      claybot.Now(),
	}, "/", "") // there are no other bots in this chat
	h, leave, err := c.enter(r.Context(), d)
	if err != nil {
		return err
	}
	defer leave()
	if err := c.store(r.Context(), h, d, m); err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]any{"messageId": m.ID, "at": m.At})
	return nil
}

// messageID returns the id under which a message is stored. It contains the
// user, because two users may use the same names for conversations and
// messages. It has three parts for the owner and four for others; no part
// contains a slash.
func (c *Chat) messageID(d claybot.Descriptor, id string) claybot.MessageID {
	user := ""
	if d.UserID != owner {
		user = url.PathEscape(d.UserID) + "/"
	}
	return claybot.MessageID(c.name + "/" + user + d.ChannelID + "/" + id)
}

// store posts a message to the handler and returns when it is durable.
func (c *Chat) store(ctx context.Context, h connectors.Handler, d claybot.Descriptor, m claybot.AgentMessage) error {
	if err := h.Post(ctx, d, m); err != nil {
		c.log.Warn("failed to store message", "message", m.ID, "err", err)
		switch {
		case errors.Is(err, storage.ErrFull):
			return errFull
		case storage.ClassOf(err) == storage.ClassMessage: // a retry would fail
			return errUnstorable
		}
		return errStore
	}
	c.pulse.OK()
	return nil
}

// fail writes err, if any, as the response.
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
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
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

// readable returns the text of a message, or why it is too long.
func readable(s string) (string, error) {
	text := clean(s)
	if n := utf8.RuneCountInString(text); n > textLimit {
		return "", bad("The message has " + strconv.Itoa(n) + " characters; at most " + strconv.Itoa(textLimit) + " are taken. Send it in parts.")
	}
	return text, nil
}

// clean replaces invalid UTF-8 and removes NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// validID reports whether s may be part of a message id: short, and without
// separators and unusual characters.
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
