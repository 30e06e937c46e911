package webchat

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Limits of uploads.
const (
	// MaxUpload is the maximum size of one file in bytes. The caller of Handler
	// must allow request bodies of this size.
	MaxUpload = 50 << 20
	maxFiles  = 10
	// uploadTime is the time limit of one upload.
	uploadTime = 10 * time.Minute
	// pieceWait is how long one write of a download may block. io.Copy writes 32
	// KiB at a time.
	pieceWait = 30 * time.Second
)

var (
	errTooLarge = &problem{http.StatusRequestEntityTooLarge, "too_large", "The file is larger than 50 MiB."}
	errQuota    = &problem{http.StatusRequestEntityTooLarge, "quota", "The file was not stored: your files take all the space that they may take. An operator can raise limits.files_per_owner, or delete agents that you no longer need."}
	errNoFile   = &problem{http.StatusNotFound, "not_found", "There is no such file in this conversation."}
)

// A fileView is the JSON form of a file.
type fileView struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size"`
}

func filesView(files []claybot.FileReference) []fileView {
	var views []fileView
	for _, f := range files {
		views = append(views, fileView{f.ID, f.Name, f.MIMEType, f.Size})
	}
	return views
}

// upload stores a file for a later message.
func (c *Chat) upload(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, files Files) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = "application/octet-stream"
	}
	// The server's deadlines are for ordinary requests; a large file on a slow
	// connection takes longer. Errors are ignored, because a writer without
	// deadlines has none to extend. The write deadline must not expire during the
	// upload: that would end an HTTP/2 stream.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(uploadTime))
	_ = rc.SetWriteDeadline(time.Now().Add(uploadTime + writeWait))
	f := claybot.FileReference{Name: r.URL.Query().Get("name"), MIMEType: kind}
	kept, err := files.Attach(r.Context(), d, f, http.MaxBytesReader(w, r.Body, MaxUpload))
	_ = rc.SetWriteDeadline(time.Now().Add(writeWait)) // for the response, as above
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big), errors.Is(err, storage.ErrTooMany):
		return errTooLarge
	case errors.Is(err, storage.ErrQuota):
		return errQuota
	case errors.Is(err, storage.ErrFull):
		return errFull
	case err != nil && r.Context().Err() != nil:
		return err // the client is gone
	case err != nil:
		c.log.Warn("failed to store file", "conversation", d.ChannelID, "err", err)
		return errStore
	}
	writeJSON(w, http.StatusCreated, filesView([]claybot.FileReference{kept})[0])
	return nil
}

// download serves a file, always as an attachment, because uploads may be HTML.
func (c *Chat) download(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, files Files) error {
	f, content, err := files.Attached(r.Context(), d, r.PathValue("id"))
	if errors.Is(err, storage.ErrNotFound) {
		return errNoFile
	}
	if err != nil {
		c.log.Warn("failed to read file", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	defer content.Close() // it was only read
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-store")
	_, err = io.Copy(pieces{w, http.NewResponseController(w)}, struct{ io.Reader }{content}) // hides WriterTo, so that each piece has its own deadline
	return err
}

// pieces writes a long response with a deadline for each piece: a slow reader
// gets all of it, and a stalled one is disconnected.
type pieces struct {
	w  io.Writer
	rc *http.ResponseController
}

func (p pieces) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(pieceWait)) // without deadlines, TCP detects a dead peer
	return p.w.Write(b)
}

// attached returns the stored files that a message refers to.
func attached(ctx context.Context, d claybot.Descriptor, kept Files, ids []string) ([]claybot.FileReference, error) {
	if len(ids) > maxFiles {
		return nil, bad("At most " + strconv.Itoa(maxFiles) + " files go with one message.")
	}
	var files []claybot.FileReference
	for _, id := range ids {
		f, content, err := kept.Attached(ctx, d, id)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, bad("One of the files is not there (any more); send it again.")
		}
		if err != nil {
			return nil, errRead
		}
		_ = content.Close() // only the reference is needed
		files = append(files, f)
	}
	return files, nil
}
