package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var _ connectors.FileSender = (*Connector)(nil)

// A fileMessage holds the parameters of a file upload.
type fileMessage struct {
	textMessage // its text is the caption
	file        claybot.FileReference
	open        func() (io.ReadCloser, error)
}

// SendFile sends the file of o with its text as the caption. A file that
// Telegram refuses as a picture or voice message is sent as a document, and a
// caption whose format it refuses as plain text, and a file for a topic that is closed or deleted goes
// to the General topic. Only a failure after the last
// byte of the file is ambiguous.
func (c *Connector) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (receipt string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	m := fileMessage{file: *o.File, open: open}
	if most := c.maxUpload(); m.file.Size > most {
		return "", &connectors.PermanentError{Err: fmt.Errorf("telegram: the file has %d bytes; bots send up to %d MB", m.file.Size, most>>20)}
	}
	if m.textMessage, err = addressed(o); err != nil {
		return "", err
	}
	if err := c.mayGrow(m.ChatID, o); err != nil {
		return "", err
	}
	formatted, plain := format(o.Text), o.Text
	if strings.TrimSpace(plain) == "" {
		formatted, plain = "", ""
	}
	if o.Resent {
		mark := texts.Of(ctx).Resent()
		formatted, plain = strings.TrimSpace(element("i", mark)+formatted), strings.TrimSpace(mark+plain)
	}
	if m.Text = formatted; formatted != "" {
		m.ParseMode = "HTML"
	}
	receipt, err = c.attemptFile(ctx, m)
	for {
		var r *refusal
		if !errors.As(err, &r) || r.code != http.StatusBadRequest && r.code != http.StatusForbidden || r.migrateTo != 0 {
			break
		}
		plainer, ok := m.plainer(r, plain)
		if !ok {
			break
		}
		c.log.Warn("telegram rejected the presentation of a file, retrying with a plainer one", "outgoing", o.ID, "err", err)
		m = plainer
		receipt, err = c.attemptFile(ctx, m)
	}
	var r *refusal
	if errors.As(err, &r) && r.migrateTo != 0 {
		if h := c.handler.Load(); h != nil {
			if err := c.movedChat(ctx, *h, m.ChatID, r.migrateTo, claybot.Now()); err != nil {
				return "", fmt.Errorf("telegram: note the new id of a chat: %w", err)
			}
		}
		m.ChatID = r.migrateTo
		m.leaveTopic()
		receipt, err = c.attemptFile(ctx, m)
	}
	if errors.As(err, &r) && r.code == http.StatusRequestEntityTooLarge {
		return "", &connectors.PermanentError{Err: err}
	}
	return receipt, classify(err, false)
}

// plainer returns m without the part that Telegram refused; ok is false if that
// part cannot be left out.
func (m fileMessage) plainer(r *refusal, plain string) (_ fileMessage, ok bool) {
	switch {
	case m.ParseMode != "" && r.says("can't parse entities", "caption is too long"):
		m.Text, m.ParseMode = plain, ""
	case m.file.Kind != claybot.FileDocument && r.says("photo_", "image_process_failed", "wrong type", "voice_messages_forbidden", "wrong file", "video_"):
		m.file.Kind = claybot.FileDocument
	case m.ThreadID != 0 && r.says(topicGone...):
		m.leaveTopic()
	default:
		return m, false
	}
	return m, true
}

// method returns the API method that sends m and the name of its file
// parameter.
func (m fileMessage) method() (method, field string) {
	switch {
	case m.file.Kind == claybot.FilePhoto && m.file.Size <= maxPhotoBytes:
		return "sendPhoto", "photo"
	case m.file.Kind == claybot.FileVoice:
		return "sendVoice", "voice"
	case m.file.Kind == claybot.FileAudio:
		return "sendAudio", "audio"
	case m.file.Kind == claybot.FileVideo:
		return "sendVideo", "video"
	}
	return "sendDocument", "document"
}

// attemptFile makes one call, if the pace allows it.
func (c *Connector) attemptFile(ctx context.Context, m fileMessage) (receipt string, err error) {
	if wait, all := c.pace.take(m.ChatID); wait > 0 {
		return "", &connectors.RetryError{After: wait, All: all, Err: errors.New("telegram asked this chat to slow down")}
	}
	method, _ := m.method()
	var sent struct {
		MessageID int64 `json:"message_id"`
	}
	err = c.send.upload(ctx, m, &sent)
	var r *refusal
	switch {
	case err == nil && sent.MessageID == 0:
		return "", &failure{method: method, left: true, err: errors.New("the answer names no message")}
	case err == nil:
		c.pace.done(m.ChatID)
		return strconv.FormatInt(sent.MessageID, 10), nil
	case errors.As(err, &r) && r.code == http.StatusTooManyRequests:
		return "", c.refused(m.ChatID, r)
	}
	return "", err
}

// form returns m with the bytes of the file.
func (m fileMessage) form(content io.Reader) (*connectors.Form, error) {
	fields := [][2]string{{"chat_id", strconv.FormatInt(m.ChatID, 10)}, {"caption", m.Text}, {"parse_mode", m.ParseMode}}
	if m.ThreadID != 0 {
		fields = append(fields, [2]string{"message_thread_id", strconv.FormatInt(m.ThreadID, 10)})
	}
	if m.Reply != nil {
		reply, err := json.Marshal(m.Reply)
		if err != nil {
			return nil, err
		}
		fields = append(fields, [2]string{"reply_parameters", string(reply)})
	}
	_, field := m.method()
	return connectors.NewForm(fields, field, m.file.Name, content, m.file.Size)
}

// upload sends m.
func (c *client) upload(ctx context.Context, m fileMessage, result any) error {
	method, _ := m.method()
	content, err := m.open()
	if err != nil {
		return err
	}
	defer content.Close() // it was only read
	form, err := m.form(content)
	if err != nil {
		return &failure{method: method, err: err}
	}
	return c.decide(ctx, method, connectors.Request{Form: form, Limit: maxReplyBytes}, result)
}
