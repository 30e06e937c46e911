package delivery

import (
	"context"
	"errors"
	"fmt"
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
func (x *delivery) sendTime(ctx context.Context) (context.Context, context.CancelFunc) {
	whole := context.WithoutCancel(ctx)
	if x.o.File == nil {
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
func (x *delivery) sendFile(ctx context.Context) (string, error) {
	sender, ok := x.sender.(connectors.FileSender)
	if !ok {
		return "", &connectors.PermanentError{Err: errors.New("no files can be sent there")}
	}
	return sender.SendFile(ctx, x.o, func() (io.ReadCloser, error) {
		_, r, err := x.cfg.Files.OpenFile(ctx, x.o.Agent, x.o.File.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, &connectors.PermanentError{Err: errors.New("the file no longer exists")}
		}
		return r, err
	})
}

// inParts returns a long reply, which the chat refuses as a file, as the messages of its text;
// none for other messages, and for one that may have arrived. The first is the again message
// of the file. They must commit with the failure.
func (x *delivery) inParts(ctx context.Context) []claybot.Outgoing {
	o := x.o
	if o.File == nil || o.Kind == claybot.OutgoingFile || o.Copies > 0 {
		return nil
	}
	_, r, err := x.cfg.Files.OpenFile(ctx, o.Agent, o.File.ID)
	if err != nil {
		about(x.cfg.Log, o).Warn("failed to read a long reply", "err", err)
		return nil
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		about(x.cfg.Log, o).Warn("failed to read a long reply", "err", err)
		return nil
	}
	out := x.Compose(claybot.Outgoing{Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: o.Route, Once: o.Once}, string(text))
	for i := range out {
		out[i].ID = AgainPrefix + o.ID
		if i > 0 {
			out[i].ID += fmt.Sprint("/", i+1)
		}
	}
	return out
}
