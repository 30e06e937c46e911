package delivery

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// fileTimeout bounds one attempt to send a file. A shutdown grants it no more time
// than any other send.
const fileTimeout = 10 * time.Minute

// sendTime bounds one attempt. An attempt that began is completed, also during a
// shutdown, which waits for a file no longer than for a text.
func sendTime(ctx context.Context, o claybot.Outgoing) (context.Context, context.CancelFunc) {
	whole := context.WithoutCancel(ctx)
	if o.File == nil {
		return context.WithTimeout(whole, sendTimeout)
	}
	sending, cancel := context.WithTimeout(whole, fileTimeout)
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(sendTimeout)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-sending.Done():
		}
	})
	return sending, func() { stop(); cancel() }
}

// sendFile attempts to send a message with a file.
func (c *courier) sendFile(ctx context.Context, to connectors.Sender, o claybot.Outgoing) (string, error) {
	sender, ok := to.(connectors.FileSender)
	if !ok {
		return "", &connectors.PermanentError{Err: errors.New("no files can be sent there")}
	}
	return sender.SendFile(ctx, o, func() (io.ReadCloser, error) {
		_, r, err := c.cfg.Files.OpenFile(ctx, o.Agent, o.File.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, &connectors.PermanentError{Err: errors.New("the file no longer exists")}
		}
		return r, err
	})
}
