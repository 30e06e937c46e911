package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var _ connectors.Fetcher = (*Connector)(nil)

// A file is a file of a message.
type file struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Title      string `json:"title"`
	Size       int64  `json:"size"`
	MIMEType   string `json:"mimetype"`
	Mode       string `json:"mode"`
	External   bool   `json:"is_external"`
	Subtype    string `json:"subtype"`
	User       string `json:"user"` // who uploaded it
	DurationMS int64  `json:"duration_ms"`
}

// pending returns the files of a message as references to fetch, and a line for
// each file that cannot be fetched.
func pending(self identity, files []file) (all []claybot.FileReference, lines []string) {
	for _, f := range files {
		got := claybot.FileReference{
			Name: cmp.Or(f.Name, f.Title, "file"), MIMEType: f.MIMEType, Size: max(f.Size, 0),
			Seconds: int(max(f.DurationMS, 0)+999) / 1000, Kind: kindOf(f), Source: self.qualified(self.Team, f.ID),
		}
		if isCanvas(f.Mode, f.MIMEType) {
			got.Name, got.MIMEType = cmp.Or(f.Title, f.Name, "canvas")+".html", "text/html"
		}
		why := ""
		switch {
		case f.External || f.Mode == "external":
			why = texts.SlackFileExternal
		case f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
			why = texts.SlackFileGone
		case f.ID == "" || len(f.ID) > maxFileIDChars || word(strings.ToLower(f.ID)) != strings.ToLower(f.ID):
			why = "it cannot be asked for"
		}
		if why != "" {
			lines = append(lines, "["+connectors.FileLine(got)+": "+why+"]")
			continue
		}
		got.ID = connectors.FileID("slack", self.Team, f.ID)
		all = append(all, got)
	}
	return all, lines
}

// isCanvas reports whether a file is a canvas, whose content Slack gives as HTML.
// Older ones are documents of Quip.
func isCanvas(mode, mimeType string) bool {
	return mode == "canvas" || mode == "quip" || mimeType == "application/vnd.slack-docs"
}

// kindOf returns the kind as which Slack shows a file.
func kindOf(f file) claybot.FileKind {
	if f.Subtype == "slack_audio" {
		return claybot.FileVoice
	}
	return connectors.KindOf(f.MIMEType)
}

// Fetch downloads a file of a message. The token is sent to Slack's own hosts
// only and never follows a redirect.
func (c *Connector) Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	if d := c.penalties.left(methodFileInfo, ""); d > 0 {
		return nil, &connectors.RetryError{After: d, Err: errors.New(methodFileInfo + ": slack asked for a pause")}
	}
	id, _ := c.me().local(f.Source)
	info, err := c.fileInfo(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsExternal || info.Mode == "external":
		return nil, &connectors.RefusedError{Text: texts.SlackFileExternal}
	case info.Mode == "tombstone" || info.Mode == "hidden_by_limit":
		return nil, &connectors.RefusedError{Text: texts.SlackFileGone}
	case int64(info.Size) > maxDownloadBytes:
		return nil, &connectors.RefusedError{Text: texts.SlackFileTooLarge}
	}
	if isCanvas(info.Mode, info.Mimetype) {
		return c.download(ctx, info.URLPrivate, "text/html")
	}
	return c.download(ctx, cmp.Or(info.URLPrivateDownload, info.URLPrivate), info.Mimetype)
}

// fileInfo calls files.info.
func (c *Connector) fileInfo(ctx context.Context, id string) (*slackapi.File, error) {
	info, _, _, err := c.api.GetFileInfoContext(ctx, id, 1, 1)
	if err == nil {
		return info, nil
	}
	if d := waitFor(err); d > 0 {
		c.penalties.add(methodFileInfo, "", d)
	}
	switch code, _ := judge(err); code {
	case "file_not_found", "file_deleted", "file_not_visible", "not_visible", "channel_not_found":
		return nil, &connectors.RefusedError{Text: texts.SlackFileGone, Err: c.refused(methodFileInfo, c.cfg.BotTokenName, err)}
	case "missing_scope":
		return nil, &connectors.RefusedError{Text: texts.SlackFileNoScope, Err: c.refused(methodFileInfo, c.cfg.BotTokenName, err)}
	}
	return nil, c.refused(methodFileInfo, c.cfg.BotTokenName, err)
}

// own reports whether u is an address of Slack, which may receive the token.
func (c *Connector) own(u *url.URL) bool {
	if api, err := url.Parse(c.cfg.APIURL); err == nil && !strings.EqualFold(api.Hostname(), "slack.com") {
		if strings.EqualFold(u.Host, api.Host) && u.Scheme == api.Scheme { // a custom API host
			return true
		}
	}
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && u.User == nil && (u.Port() == "" || u.Port() == "443") && (host == "slack.com" || strings.HasSuffix(host, ".slack.com"))
}

// download opens the file at a private address.
func (c *Connector) download(ctx context.Context, address, mimeType string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil || !c.own(u) {
		return nil, &connectors.RefusedError{Text: texts.SlackFileForeign}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &connectors.RefusedError{Text: texts.SlackFileForeign}
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, c.refused("read a file", c.cfg.BotTokenName, err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.files.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read a file: %w", c.clean(err))
	}
	if err := judgeFile(resp, mimeType); err != nil {
		_ = resp.Body.Close() // the body is not needed
		return nil, err
	}
	return resp.Body, nil
}

// judgeFile returns an error if a response is not the file. Without the scope
// Slack redirects to its login page or returns that page with status 200.
func judgeFile(resp *http.Response, mimeType string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	status := fmt.Errorf("HTTP status %d, type %s", resp.StatusCode, word(kind))
	switch s := resp.StatusCode; {
	case s >= 300 && s < 400, s == http.StatusUnauthorized, s == http.StatusForbidden:
		return &connectors.RefusedError{Text: texts.SlackFileNoScope, Err: status}
	case s == http.StatusNotFound || s == http.StatusGone:
		return &connectors.RefusedError{Text: texts.SlackFileGone, Err: status}
	case s == http.StatusTooManyRequests:
		return &connectors.RetryError{After: unnamedWait, Err: status}
	case s != http.StatusOK:
		return fmt.Errorf("read a file: %w", status)
	case kind == "text/html" && !strings.Contains(mimeType, "html"):
		return &connectors.RefusedError{Text: texts.SlackFileNoScope, Err: status}
	case resp.ContentLength > maxDownloadBytes:
		return &connectors.RefusedError{Text: texts.SlackFileTooLarge}
	}
	return nil
}
