package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var _ connectors.Fetcher = (*Connector)(nil)

// An attachment is a file of a message. Its address is signed and expires within a day or so:
// it is asked for again when the file is fetched.
type attachment struct {
	ID       string  `json:"id"`
	Name     string  `json:"filename"`
	Size     int64   `json:"size"`
	MIMEType string  `json:"content_type"`
	URL      string  `json:"url"`
	Seconds  float64 `json:"duration_secs"`
	Waveform string  `json:"waveform"`
}

// attached returns the files of a message as references to fetch, and a line for each file that
// cannot be fetched.
func (r *receiver) attached(m message, all []attachment) (files []claybot.FileReference, lines []string) {
	for _, a := range all {
		f := claybot.FileReference{
			ID: connectors.FileID("discord", a.ID), Name: a.Name, MIMEType: a.MIMEType, Size: max(a.Size, 0), Seconds: int(max(a.Seconds, 0) + 0.999),
			Kind: a.kind(), Source: strings.Join([]string{m.Channel, m.ID, a.ID}, "/"),
		}
		if !isID(a.ID) {
			lines = append(lines, "["+connectors.FileLine(f)+": "+texts.DiscordFileGone+"]")
			continue
		}
		files = append(files, f)
	}
	return files, lines
}

func (a attachment) kind() claybot.FileKind {
	if a.Waveform != "" {
		return claybot.FileVoice
	}
	return connectors.KindOf(a.MIMEType)
}

// Fetch downloads a file of a message. The token is not sent along.
func (c *Connector) Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	parts := strings.Split(f.Source, "/")
	if len(parts) != 3 || !isID(parts[0]) || !isID(parts[1]) {
		return nil, &connectors.RefusedError{Text: texts.DiscordFileGone}
	}
	var m message
	err := c.api.do(ctx, channelCall(http.MethodGet, "get message", parts[0], "/messages/"+parts[1], nil), &m)
	if absent(err) {
		return nil, &connectors.RefusedError{Text: texts.DiscordFileGone, Err: err}
	}
	if err != nil {
		return nil, err
	}
	all := m.Attachments
	for _, s := range m.Snapshots {
		all = append(all, s.Message.Attachments...)
	}
	for _, a := range all {
		if a.ID == parts[2] {
			return c.download(ctx, a)
		}
	}
	return nil, &connectors.RefusedError{Text: texts.DiscordFileGone}
}

// fileHosts are those of Discord's files.
var fileHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// hosts reports whether u is an address of Discord's files.
func (c *Connector) hosts(u *url.URL) bool {
	if api, err := url.Parse(c.cfg.BaseURL); err == nil && !strings.HasSuffix(api.Hostname(), "discord.com") {
		return u.Scheme == api.Scheme && strings.EqualFold(u.Host, api.Host) // a custom API host
	}
	return slices.Contains(fileHosts, strings.ToLower(u.Host)) && u.Scheme == "https" && u.User == nil
}

// download opens the file at its present address.
func (c *Connector) download(ctx context.Context, a attachment) (io.ReadCloser, error) {
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || !c.hosts(u):
		return nil, &connectors.RefusedError{Text: texts.DiscordFileForeign}
	case a.Size > maxDownloadBytes:
		return nil, &connectors.RefusedError{Text: texts.FileTooLarge(maxDownloadBytes)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &connectors.RefusedError{Text: texts.DiscordFileForeign}
	}
	resp, err := c.api.http.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("discord: read a file: %w", bare(err))
	}
	if resp.StatusCode == http.StatusOK && resp.ContentLength <= maxDownloadBytes {
		return resp.Body, nil
	}
	_ = resp.Body.Close() // the body is not needed
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil, &connectors.RefusedError{Text: texts.FileTooLarge(maxDownloadBytes)}
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusGone:
		return nil, &connectors.RefusedError{Text: texts.DiscordFileGone, Err: fmt.Errorf("HTTP status %d", resp.StatusCode)}
	}
	return nil, &failure{what: "read a file", err: errors.New(resp.Status)}
}
