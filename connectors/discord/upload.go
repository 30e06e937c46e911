package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var _ connectors.FileSender = (*Connector)(nil)

// SendFile sends the file of o with its text. Only a failure after the last byte of the file is
// ambiguous.
func (c *Connector) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (receipt string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	channel, err := target(o.Route)
	if err != nil {
		return "", err
	}
	m := c.sending(ctx, o)
	receipt, err = c.upload(ctx, o, channel, m, open)
	if m.Reference != nil && refusedWith(err, 0, codeNoHistory) {
		c.log.Warn("discord rejected the reply, sending without a reference", "outgoing", o.ID, "err", err)
		m.Reference = nil
		receipt, err = c.upload(ctx, o, channel, m, open)
	}
	if refusedWith(err, http.StatusRequestEntityTooLarge) {
		err = &connectors.PermanentError{Err: fmt.Errorf("discord: the file has %d bytes; servers take up to %d MB, those with boosts more", o.File.Size, maxUploadBytes>>20)}
	}
	return receipt, c.outcome(err, o)
}

// upload makes the call of one attempt.
func (c *Connector) upload(ctx context.Context, o claybot.Outgoing, channel string, m sending, open func() (io.ReadCloser, error)) (receipt string, err error) {
	m.Attachments = []map[string]any{{"id": 0, "filename": o.File.Name}}
	text, err := json.Marshal(m)
	if err != nil {
		return "", &connectors.PermanentError{Err: fmt.Errorf("discord: create message: %w", err)}
	}
	data, err := open()
	if err != nil {
		return "", err
	}
	defer data.Close() // it was only read
	x := channelCall(http.MethodPost, "create message", channel, "/messages", nil)
	if x.form, err = connectors.NewForm([][2]string{{"payload_json", string(text)}}, "files[0]", o.File.Name, data, o.File.Size); err != nil {
		return "", &connectors.PermanentError{Err: fmt.Errorf("discord: create message: %w", err)}
	}
	return c.created(ctx, o, channel, m, x)
}
