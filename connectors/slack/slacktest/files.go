package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSnippetBytes is the most that a snippet has
// (docs.slack.dev/reference/methods/files.getUploadURLExternal, read 2026-11-30). The languages are some
// of those that Slack knows.
const maxSnippetBytes = 1_000_000

var snippetTypes = []string{"go", "python", "shell", "sql", "text"}

// maxUploadBytes is the most that an upload takes here.
const maxUploadBytes = 64 << 20

// A File is the description of a file in a message. Those of AddFile can be read.
type File struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Title    string `json:"title,omitempty"`
	Size     int64  `json:"size"`
	MIMEType string `json:"mimetype,omitempty"`
	Mode     string `json:"mode,omitempty"`
	External bool   `json:"is_external,omitempty"`
	Subtype  string `json:"subtype,omitempty"`
	User     string `json:"user,omitempty"` // who uploaded it
	Duration int64  `json:"duration_ms,omitempty"`
}

// A held is a file of the workspace.
type held struct {
	File
	data     []byte
	length   int64  // that an upload was announced with
	ticket   string // by which it is written; empty for files of people
	uploaded bool
	snippet  string
	shared   []share
	address  string // in the place of its own
	gone     bool
}

type share struct{ channel, thread, ts string }

// A Shared is a file that the bot shared, in the order of the shares.
type Shared struct {
	ID, Channel, Thread, Name, Title, Comment string
	Data                                      []byte
	Snippet                                   string // its language, of code that people read in the chat
}

// cabinet is what the workspace has of files.
type cabinet struct {
	files     map[string]*held
	out       []Shared
	noScope   map[string]bool                // scopes that the app lacks
	reactions map[string]map[string][]string // channel, ts: names
}

// AddFile puts a file of a user into the workspace.
func (s *Server) AddFile(name, mimeType string, data []byte) File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := File{ID: s.next("F"), Name: name, Size: int64(len(data)), MIMEType: mimeType, Mode: "hosted"}
	s.files[f.ID] = &held{File: f, data: data}
	return f
}

// AddCanvas puts a canvas of a user into the workspace, which is downloaded as HTML.
func (s *Server) AddCanvas(title, html string) File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := File{ID: s.next("F"), Name: title, Title: title, Size: int64(len(html)), MIMEType: canvasType, Mode: "quip"}
	s.files[f.ID] = &held{File: f, data: []byte(html)}
	return f
}

// canvasType is the type that the file of a canvas says it has.
const canvasType = "application/vnd.slack-docs"

// Redirect makes the private address of a file another one.
func (s *Server) Redirect(id, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id].address = address
}

// DeleteFile takes a file away.
func (s *Server) DeleteFile(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id].gone = true
}

// Files are those that the bot has shared in a channel.
func (s *Server) Files(channel string) []Shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Shared
	for _, f := range s.out {
		if f.Channel == channel {
			out = append(out, f)
		}
	}
	return out
}

// Reactions are the names of those that the bot put on a message.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.reactions[channel][ts]...)
}

func (s *Server) fileInfo(args url.Values, host string) answer {
	f := s.files[args.Get("file")]
	switch {
	case f == nil || f.ticket != "" && !f.uploaded:
		return refuse("file_not_found")
	case f.gone:
		return refuse("file_deleted")
	}
	shares := map[string][]answer{}
	for _, x := range f.shared {
		if time.Since(stampTime(x.ts)) >= s.cfg.HistoryDelay {
			shares[x.channel] = append(shares[x.channel], answer{"ts": x.ts, "thread_ts": x.thread})
		}
	}
	a := answer{
		"id": f.ID, "name": f.Name, "size": f.Size, "mimetype": f.MIMEType, "mode": f.Mode, "is_external": f.External,
		"shares": answer{"private": shares},
	}
	if !f.External {
		address := f.address
		if address == "" {
			address = "http://" + host + "/files-pri/" + f.ID
		}
		a["url_private"], a["url_private_download"] = address, address
	}
	return answer{"ok": true, "file": a, "comments": []any{}, "paging": answer{"count": 1, "total": 0, "page": 1, "pages": 0}}
}

func stampTime(ts string) time.Time {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64) // stamps of this server are well formed
	us, _ := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000)
}

func (s *Server) uploadURL(args url.Values, host string) answer {
	n, err := strconv.ParseInt(args.Get("length"), 10, 64)
	if err != nil || n <= 0 || n > maxUploadBytes || args.Get("filename") == "" {
		return refuse("invalid_arguments")
	}
	snippet := args.Get("snippet_type")
	switch {
	case snippet == "":
	case !slices.Contains(snippetTypes, snippet):
		return refuse("unknown_snippet_type")
	case n > maxSnippetBytes:
		return refuse("snippet_too_large")
	}
	f := &held{snippet: snippet, File: File{ID: s.next("F"), Name: args.Get("filename"), Size: n, Mode: "hosted"}, length: n, ticket: s.next("ticket-upload-")}
	s.files[f.ID] = f
	return answer{"ok": true, "upload_url": "http://" + host + "/upload/" + s.cfg.Team + "/" + f.ticket, "file_id": f.ID}
}

// serveUpload takes the bytes of an upload; in faults and in the journal it is
// the method "upload".
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUploadBytes))
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away
	}
	f := s.fault("upload", "")
	if f != (Fault{}) {
		s.fail(w, r, "upload", url.Values{}, f, answer{"ok": true})
		return
	}
	status := http.StatusNotFound
	s.mu.Lock()
	for _, f := range s.files {
		if f.ticket != r.PathValue("ticket") || f.ticket == "" {
			continue
		}
		if status = http.StatusBadRequest; int64(len(data)) == f.length && r.Header.Get("Authorization") == "" {
			f.data, f.uploaded, status = data, true, http.StatusOK
		}
	}
	s.mu.Unlock()
	s.note("upload", url.Values{}, status, http.StatusText(status))
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "OK - %d", len(data)) // the client may be gone
}

// complete shares uploads that have their bytes.
func (s *Server) complete(args url.Values) answer {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(args.Get("files")), &list) != nil || len(list) == 0 {
		return refuse("invalid_arguments")
	}
	c, code := s.writable(args.Get("channel_id"))
	if code != "" {
		return refuse(code)
	}
	thread := args.Get("thread_ts")
	if thread != "" && c.find(thread) == nil {
		return refuse("thread_not_found")
	}
	for _, x := range list {
		if f := s.files[x.ID]; f == nil || !f.uploaded || len(f.shared) > 0 {
			return refuse("file_not_found")
		}
	}
	if wait := c.bucket.take(s.cfg.PostEvery, s.cfg.Burst); wait > 0 {
		return answer{"retry": wait}
	}
	for _, x := range list {
		f := s.files[x.ID]
		f.shared = append(f.shared, share{c.id, thread, s.stamp()})
		s.out = append(s.out, Shared{f.ID, c.id, thread, f.Name, x.Title, args.Get("initial_comment"), f.data, f.snippet})
	}
	s.change()
	return answer{"ok": true, "files": list}
}

// serveFile gives a private file to the bot's token. Without the scope it shows a
// page, as Slack does. In faults and in the journal it is the method "file".
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	if f := s.fault("file", ""); f != (Fault{}) {
		s.fail(w, r, "file", url.Values{}, f, answer{})
		return
	}
	s.mu.Lock()
	f, lacks := s.files[r.PathValue("id")], !s.granted("files:read")
	allowed := s.botToken(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) == "" && !lacks
	s.mu.Unlock()
	switch {
	case !allowed:
		s.note("file", url.Values{}, http.StatusOK, "login page")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in | Slack</title>") // the client may be gone
	case f == nil || f.gone:
		s.note("file", url.Values{}, http.StatusNotFound, "not found")
		w.WriteHeader(http.StatusNotFound)
	default:
		s.note("file", url.Values{}, http.StatusOK, "ok")
		kind := f.MIMEType
		if kind == canvasType {
			kind = "text/html; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(f.data) // the client may be gone
	}
}

// react adds a reaction of the bot.
func (s *Server) react(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	name, ts := args.Get("name"), args.Get("timestamp")
	switch {
	case code != "":
		return refuse(code)
	case ts == "":
		return refuse("no_item_specified")
	case c.find(ts) == nil:
		return refuse("message_not_found")
	case name == "" || strings.HasPrefix(name, "unknown") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-+'") != "":
		return refuse("invalid_name")
	}
	for _, old := range s.reactions[c.id][ts] {
		if old == name {
			return refuse("already_reacted")
		}
	}
	if s.reactions[c.id] == nil {
		s.reactions[c.id] = make(map[string][]string)
	}
	s.reactions[c.id][ts] = append(s.reactions[c.id][ts], name)
	s.reacted(c.id, ts, s.cfg.BotUser, name, false)
	s.change()
	return answer{"ok": true}
}

// unreact removes a reaction of the bot
// (docs.slack.dev/reference/methods/reactions.remove, read 2026-11-28).
func (s *Server) unreact(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	name, ts := args.Get("name"), args.Get("timestamp")
	switch {
	case code != "":
		return refuse(code)
	case ts == "":
		return refuse("no_item_specified")
	case c.find(ts) == nil:
		return refuse("message_not_found")
	}
	before := s.reactions[c.id][ts]
	after := slices.DeleteFunc(slices.Clone(before), func(old string) bool { return old == name })
	if len(after) == len(before) {
		return refuse("no_reaction")
	}
	s.reactions[c.id][ts] = after
	s.reacted(c.id, ts, s.cfg.BotUser, name, true)
	s.change()
	return answer{"ok": true}
}
