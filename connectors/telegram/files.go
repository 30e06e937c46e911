package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var _ connectors.Fetcher = (*Connector)(nil)

// file returns the file of a message as a reference to fetch; ok is false if
// there is none or it cannot be fetched.
func (c *Connector) file(m *content) (f claybot.FileReference, ok bool) {
	unique := ""
	switch {
	case len(m.Photo) > 0:
		p := m.Photo[len(m.Photo)-1] // the largest
		f = claybot.FileReference{Kind: claybot.FilePhoto, Name: "photo.jpg", MIMEType: "image/jpeg", Size: int64(p.FileSize), Source: p.FileID}
		unique = p.FileUniqueID
	case m.Animation != nil: // comes with a document as well
		a := m.Animation
		f = claybot.FileReference{Kind: claybot.FileVideo, Name: cmp.Or(a.FileName, "animation.mp4"), MIMEType: a.MimeType, Size: int64(a.FileSize), Seconds: a.Duration, Source: a.FileID}
		unique = a.FileUniqueID
	case m.Document != nil:
		d := m.Document
		f = claybot.FileReference{Kind: claybot.FileDocument, Name: cmp.Or(d.FileName, "document"), MIMEType: d.MimeType, Size: int64(d.FileSize), Source: d.FileID}
		unique = d.FileUniqueID
	case m.Voice != nil:
		v := m.Voice
		f = claybot.FileReference{Kind: claybot.FileVoice, Name: "voice.ogg", MIMEType: cmp.Or(v.MimeType, "audio/ogg"), Size: int64(v.FileSize), Seconds: v.Duration, Source: v.FileID}
		unique = v.FileUniqueID
	case m.Audio != nil:
		a := m.Audio
		f = claybot.FileReference{Kind: claybot.FileAudio, Name: cmp.Or(a.FileName, a.Title, "audio.mp3"), MIMEType: a.MimeType, Size: int64(a.FileSize), Seconds: a.Duration, Source: a.FileID}
		unique = a.FileUniqueID
	case m.Video != nil:
		v := m.Video
		f = claybot.FileReference{Kind: claybot.FileVideo, Name: cmp.Or(v.FileName, "video.mp4"), MIMEType: v.MimeType, Size: int64(v.FileSize), Seconds: v.Duration, Source: v.FileID}
		unique = v.FileUniqueID
	case m.Sticker.still():
		s := m.Sticker
		f = claybot.FileReference{Kind: claybot.FilePhoto, Name: "sticker.webp", MIMEType: "image/webp", Size: int64(s.FileSize), Source: s.FileID}
		unique = s.FileUniqueID
	case m.VideoNote != nil:
		v := m.VideoNote
		f = claybot.FileReference{Kind: claybot.FileVideo, Name: "video.mp4", MIMEType: "video/mp4", Size: int64(v.FileSize), Seconds: v.Duration, Source: v.FileID}
		unique = v.FileUniqueID
	}
	if f.Source == "" || len(f.Source) > maxFileIDBytes {
		return claybot.FileReference{}, false
	}
	f.ID = connectors.FileID("telegram", c.bot, cmp.Or(unique, f.Source))
	f.Size, f.Seconds = max(f.Size, 0), max(f.Seconds, 0)
	return f, true
}

// Fetch downloads a file of a message. The download address contains the token
// and never leaves this function.
func (c *Connector) Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var found struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	err := c.send.call(ctx, "getFile", map[string]any{"file_id": f.Source}, &found)
	var r *refusal
	switch {
	case errors.As(err, &r) && r.code == http.StatusTooManyRequests:
		return nil, &connectors.RetryError{After: r.retryAfter, Err: err}
	case errors.As(err, &r) && r.says("file is too big"):
		return nil, &connectors.RefusedError{Text: texts.TelegramFileTooLarge, Err: err}
	case errors.As(err, &r) && r.code == http.StatusBadRequest && !r.says("temporarily"):
		return nil, &connectors.RefusedError{Text: texts.TelegramFileGone, Err: err}
	case err != nil:
		return nil, err
	case strings.HasPrefix(found.Path, "/"):
		return c.openLocal(found.Path)
	case found.Size > maxDownloadBytes:
		return nil, &connectors.RefusedError{Text: texts.TelegramFileTooLarge}
	case found.Path == "" || strings.Contains(found.Path, ".."):
		return nil, &connectors.RefusedError{Text: texts.TelegramFileGone, Err: errors.New("telegram: getFile: the answer names no file")}
	}
	return c.send.download(ctx, found.Path)
}

// download opens a file below the address of the files.
func (c *client) download(ctx context.Context, path string) (io.ReadCloser, error) {
	const method = "file"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.files+(&url.URL{Path: path}).EscapedPath(), nil)
	if err != nil {
		return nil, &failure{method: method, err: errors.New("unusable address")}
	}
	resp, err := c.exchange(req)
	if err != nil {
		return nil, &failure{method: method, err: c.redact(err)}
	}
	if resp.StatusCode == http.StatusOK && resp.ContentLength <= maxDownloadBytes {
		return &redacted{resp.Body, c}, nil
	}
	_ = resp.Body.Close() // the body is not needed
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil, &connectors.RefusedError{Text: texts.TelegramFileTooLarge}
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, &connectors.RetryError{After: headerDelay(resp.Header.Get("Retry-After")), Err: errors.New("telegram: file: too many requests")}
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return nil, &connectors.RefusedError{Text: texts.TelegramFileGone, Err: fmt.Errorf("telegram: file: HTTP status %d", resp.StatusCode)}
	}
	return nil, &failure{method: method, err: fmt.Errorf("HTTP status %d", resp.StatusCode)}
}

// redacted removes the address from the errors of a response body.
type redacted struct {
	io.ReadCloser
	c *client
}

func (r *redacted) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &failure{method: "file", err: r.c.redact(err)}
	}
	return n, err
}
