package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// filesLimit is the maximum size of a message with files in bytes; larger files must be
	// uploaded first.
	filesLimit = 16 << 20
	// uploadWait bounds an upload.
	uploadWait = 10 * time.Minute
	// pieceWait bounds the wait for a client that does not read a piece of a file. A piece is
	// one write of io.Copy, 32 KiB.
	pieceWait = 30 * time.Second
)

// octets is the default content type.
const octets = "application/octet-stream"

var noFile = hint{"The agent has no file with that id.", "The history of the agent lists its files."}

// attachments serves the files of agents.
type attachments struct {
	agents web.Agents
	files  web.Files
}

func (a attachments) operations() []operation {
	return operation{tag: "agents"}.like(
		answering(http.StatusCreated, op("uploadFile", web.Operate, "POST /agents/{agent}/files", "Upload a file for a later message to an agent.").
			bytes().upTo(inbox.MaxFile).
			explained("The body is the content of the file, at most 50 MiB. Content-Type is its type.").
			query(param{name: "name", about: "Name of the file."}).
			failing(http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable).unknown(noAgent), a.upload),
		op("getFile", web.Read, "GET /agents/{agent}/files/{file}", "Download a file of an agent.").failing(http.StatusNotFound).unknown(noFile).
			served(a.get, answer{status: http.StatusOK, kind: octets, value: ""}),
	)
}

// named returns the files that a message contains or refers to. It rejects incomplete
// ones.
func named(given []web.FileGiven) ([]claybot.FileReference, error) {
	if len(given) > inbox.MaxFiles {
		return nil, bad(fmt.Sprintf("The message has %d files; the limit is %d.", len(given), inbox.MaxFiles), "Send several messages.")
	}
	var files []claybot.FileReference
	for i, g := range given {
		if (g.ID == "") == (len(g.Data) == 0) {
			return nil, bad(fmt.Sprintf("files[%d] must have either id or data.", i), "")
		}
		f := claybot.FileReference{ID: g.ID}
		if g.ID == "" {
			sum := sha256.Sum256(g.Data)
			f.SHA256 = hex.EncodeToString(sum[:])
		}
		files = append(files, f)
	}
	return files, nil
}

// keep finds the files that a message refers to and then stores those that it contains, so
// that a missing file leaves nothing behind.
func (a attachments) keep(ctx context.Context, to agentsystem.Address, given []web.FileGiven) ([]claybot.FileReference, error) {
	files := make([]claybot.FileReference, len(given))
	var err error
	for i, g := range given {
		if g.ID == "" {
			continue
		}
		if files[i], err = a.find(ctx, to, g.ID); err != nil {
			return nil, err
		}
	}
	var sent []agentsystem.SentFile
	for _, g := range given {
		if g.ID == "" {
			sent = append(sent, agentsystem.SentFile{Name: g.Name, MIMEType: kindOf(g.MIMEType), Content: g.Data})
		}
	}
	kept, err := a.files.SaveFiles(ctx, to, sent)
	if err != nil {
		return nil, err
	}
	for i, g := range given {
		if g.ID == "" {
			files[i], kept = kept[0], kept[1:]
		}
	}
	return files, nil
}

// find returns a file of an agent.
func (a attachments) find(ctx context.Context, to agentsystem.Address, id string) (claybot.FileReference, error) {
	if to.Agent == "" {
		return claybot.FileReference{}, bad("A file id needs agentId.", "Set agentId, or send the content in data.")
	}
	if _, err := a.agents.Agent(ctx, to.Agent); err != nil {
		return claybot.FileReference{}, err
	}
	f, content, err := a.files.OpenFile(ctx, to.Agent, id)
	if errors.Is(err, storage.ErrNotFound) {
		return f, bad(fmt.Sprintf("The agent has no file %.64q.", id), "Upload it with POST /agents/"+string(to.Agent)+"/files.")
	}
	if err != nil {
		return f, err
	}
	return f, content.Close()
}

func kindOf(s string) string {
	kind, _, err := mime.ParseMediaType(s)
	if err != nil {
		return octets
	}
	return kind
}

func (a attachments) upload(w http.ResponseWriter, r *http.Request) (v web.FileView, err error) {
	to := agentsystem.Address{Agent: agentOf(r)}
	if _, err := a.agents.Agent(r.Context(), to.Agent); err != nil {
		return v, err
	}
	// The response follows the upload; its deadline must not pass meanwhile, because that ends
	// an HTTP/2 stream. A writer may not support deadlines.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(uploadWait))
	_ = rc.SetWriteDeadline(time.Now().Add(uploadWait + writeWait))
	f := claybot.FileReference{Name: r.URL.Query().Get("name"), MIMEType: kindOf(r.Header.Get("Content-Type")), Sent: true}
	f, err = a.files.SaveFile(r.Context(), to, f, r.Body)
	_ = rc.SetWriteDeadline(time.Now().Add(writeWait)) // as above
	var big *http.MaxBytesError
	if errors.Is(err, storage.ErrTooMany) && r.ContentLength <= inbox.MaxFile {
		return v, &web.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large", Fix: "Send a smaller file.",
			Message: "The file exceeds the limit of files.max_inline or of all files.",
		}
	}
	if errors.As(err, &big) || errors.Is(err, storage.ErrTooMany) {
		return v, &web.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large", Fix: "Send a smaller file.",
			Message: fmt.Sprintf("The file is larger than %d MiB.", inbox.MaxFile>>20),
		}
	}
	return viewFile(f), err
}

func viewFile(f claybot.FileReference) web.FileView {
	return web.FileView{ID: f.ID, Name: f.Name, MIMEType: f.MIMEType, Size: f.Size, SHA256: f.SHA256}
}

// get serves a file as a download, never inline: an uploaded file may be a web page.
func (a attachments) get(w http.ResponseWriter, r *http.Request) error {
	f, content, err := a.files.OpenFile(r.Context(), agentOf(r), r.PathValue("file"))
	if err != nil {
		return err
	}
	defer content.Close() // only reads
	h := w.Header()
	h.Set("Content-Type", octets)
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-store")
	_, _ = io.Copy(pieces{w, http.NewResponseController(w)}, struct{ io.Reader }{content}) // forces Read and Write; the client may have disconnected
	return nil
}

// pieces writes a long response with a deadline per piece: a slow reader gets all of it,
// one that does not read is disconnected.
type pieces struct {
	w  io.Writer
	rc *http.ResponseController
}

func (p pieces) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(pieceWait)) // without deadlines, TCP detects a dead peer
	return p.w.Write(b)
}
