package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var (
	_ connectors.FileSender = (*Connector)(nil)
	_ connectors.Snippeter  = (*Connector)(nil)
)

// TakesSnippets implements connectors.Snippeter. Without the scope, code is text.
func (c *Connector) TakesSnippets() bool { return !c.short.has("files:write") }

// snippetTypes are Slack's names of languages by the ends of names of files.
//
// Shapes: docs.slack.dev/reference/methods/files.getUploadURLExternal, read 2026-11-30: a snippet has 1 MB at
// most. The page lists no types, so a type that Slack refuses is left out.
var snippetTypes = map[string]string{
	"c": "c", "cpp": "cpp", "cs": "csharp", "css": "css", "diff": "diff", "go": "go", "html": "html", "java": "java", "js": "javascript", "kt": "kotlin",
	"lua": "lua", "pl": "perl", "php": "php", "py": "python", "r": "r", "rb": "ruby", "rs": "rust", "scala": "scala", "sh": "shell", "sql": "sql",
	"swift": "swift", "ts": "typescript", "xml": "xml", "yaml": "yaml",
}

// snippetType returns as what Slack shows the code of a reply; empty for files of agents.
func snippetType(o claybot.Outgoing) string {
	if o.Kind == claybot.OutgoingFile || o.File.MIMEType != "text/plain" || o.File.Size > maxSnippetBytes {
		return ""
	}
	return cmp.Or(snippetTypes[strings.TrimPrefix(path.Ext(o.File.Name), ".")], "text")
}

// SendFile uploads the file of o and shares it in the channel, in three steps.
// The file is visible only after the last one; only that step can be ambiguous,
// and Find looks it up by the id of the upload, which is stored before. The
// receipt is that id.
func (c *Connector) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (string, error) {
	p := post{Outgoing: o, method: methodUploadURL}
	var ok bool
	if _, p.channel, ok = strings.Cut(o.Route.ChannelID, "/"); !ok || p.channel == "" {
		return "", &connectors.PermanentError{DeadRoute: true, Err: fmt.Errorf("%s: no slack channel: %q", p.method, o.Route.ChannelID)}
	}
	for _, method := range []string{methodUploadURL, methodComplete} {
		if d := c.penalties.left(method, p.channel); d > 0 {
			return "", &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack asked for a pause", method)}
		}
	}
	announced := slackapi.GetUploadURLExternalParameters{FileName: o.File.Name, FileSize: int(o.File.Size), SnippetType: snippetType(o)}
	to, err := c.api.GetUploadURLExternalContext(ctx, announced)
	if code, k := judge(err); err != nil && announced.SnippetType != "" && code != "" && (k == other || k == content) {
		announced.SnippetType = ""
		to, err = c.api.GetUploadURLExternalContext(ctx, announced)
	}
	if err == nil && (to.UploadURL == "" || to.FileID == "") {
		err = errors.New("the answer names no address")
	}
	if err != nil {
		return "", unseen(c.outcome(p, false, err))
	}
	if err := c.put(ctx, to.UploadURL, o.File.Size, open); err != nil {
		return "", err
	}
	if err := c.remember(ctx, p, to.FileID); err != nil {
		return "", err
	}
	return c.share(ctx, p, to.FileID)
}

// unseen converts the error of a step without a visible effect, which can be
// repeated.
func unseen(err error) error {
	var unknown *connectors.AmbiguousError
	if errors.As(err, &unknown) {
		return unknown.Err
	}
	return err
}

// put uploads the bytes. The address is a secret: it grants write access.
func (c *Connector) put(ctx context.Context, address string, size int64, open func() (io.ReadCloser, error)) error {
	const method = "upload"
	u, err := url.Parse(address)
	if err != nil || !c.own(u) {
		return errors.New(method + ": the address leads away from Slack")
	}
	content, err := open()
	if err != nil {
		return err
	}
	defer content.Close() // it was only read
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), io.LimitReader(content, size))
	if err != nil {
		return errors.New(method + ": unusable address")
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.files.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", method, c.clean(err))
	}
	defer resp.Body.Close() // the body is not needed
	if resp.StatusCode == http.StatusRequestEntityTooLarge {
		return &connectors.PermanentError{Err: errors.New(method + ": slack says that the file is too large")}
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP status %d", method, resp.StatusCode)
	}
	return nil
}

// share posts an upload to the channel.
func (c *Connector) share(ctx context.Context, p post, id string) (string, error) {
	p.method = methodComplete
	comment := p.Text
	if p.Resent {
		comment = texts.Of(ctx).Resent() + comment
	}
	words := mrkdwn(comment)
	if utf8.RuneCountInString(words) > maxTextChars {
		words = escape(comment)
	}
	ctx, left := traced(ctx)
	_, err := c.api.CompleteUploadExternalContext(ctx, slackapi.CompleteUploadExternalParameters{
		Files: []slackapi.FileSummary{{ID: id, Title: p.File.Name}}, Channel: p.channel, ThreadTimestamp: p.Route.ThreadID,
		InitialComment: strings.TrimSpace(words),
	})
	if err == nil {
		return id, nil
	}
	return "", c.outcome(p, left(), err)
}

// uploadKey names the newest upload that was to be shared in a channel. The
// messages of a channel go one after another, so one is enough.
func (c *Connector) uploadKey(channel string) string { return c.keyOf("upload", channel) }

// keyOf names what is remembered of a channel. Ids of channels are unique within a workspace alone.
func (c *Connector) keyOf(what, channel string) string {
	if me := c.me(); me.Team != me.home() {
		channel = me.Team + "/" + channel
	}
	return c.cfg.Name + "/" + what + "/" + channel
}

// remember stores the upload id of an Outgoing before the file becomes visible.
func (c *Connector) remember(ctx context.Context, p post, id string) error {
	value := p.ID + " " + id
	c.uploads.Store(p.channel, value)
	if c.cfg.Marks == nil {
		return nil
	}
	if err := c.cfg.Marks.SetCheckpoint(ctx, c.uploadKey(p.channel), value); err != nil {
		return fmt.Errorf("keep the id of an upload: %w", err)
	}
	return nil
}

// findFile checks once whether the upload of an Outgoing was shared. Without a
// stored upload id it was not shared, unless there are no Marks.
func (c *Connector) findFile(ctx context.Context, o claybot.Outgoing, channel string) (receipt string, found bool, err error) {
	value := ""
	if v, ok := c.uploads.Load(channel); ok {
		value, _ = v.(string)
	}
	switch {
	case value != "":
	case c.cfg.Marks == nil:
		return "", false, &connectors.PermanentError{Err: errors.New("look up: nothing is remembered of an upload")}
	default:
		if value, err = c.cfg.Marks.Checkpoint(ctx, c.uploadKey(channel)); err != nil {
			return "", false, fmt.Errorf("look up: the id of an upload: %w", err)
		}
	}
	id, ok := strings.CutPrefix(value, o.ID+" ")
	if !ok {
		return "", false, nil
	}
	if d := c.penalties.left(methodFileInfo, ""); d > 0 {
		return "", false, &connectors.RetryError{After: d, Err: errors.New(methodFileInfo + ": slack asked for a pause")}
	}
	info, err := c.fileInfo(ctx, id)
	var refused *connectors.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Text == texts.SlackFileNoScope:
		return "", false, &connectors.PermanentError{Err: err}
	case errors.As(err, &refused):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	shared := len(info.Shares.Public[channel]) > 0 || len(info.Shares.Private[channel]) > 0
	for _, in := range [][]string{info.Channels, info.Groups, info.IMs} {
		for _, at := range in {
			shared = shared || at == channel
		}
	}
	return id, shared, nil
}
