package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// A bare loop is what a bot is without any promise: long poll, model call,
// reply. It is the measure of what claybot's promises cost. It answers the
// updates of a poll concurrently and starts the next poll at once.
type bareLoop struct {
	telegram string // base address with the bot's token
	model    string
	http     *http.Client
	sync     syncMode
	log      *os.File // appended to before an update is handled

	mu sync.Mutex // of log
}

// syncMode says what a bare loop does for durability.
type syncMode int

const (
	syncNever   syncMode = iota // nothing
	syncEach                    // an append and fsync for every message
	syncBatched                 // one fsync for all messages of a poll
)

func (m syncMode) String() string {
	return [...]string{"bare loop", "bare loop, fsync per message", "bare loop, fsync per poll"}[m]
}

func newBareLoop(telegram, token, model, dir string, mode syncMode) (*bareLoop, error) {
	f, err := os.CreateTemp(dir, "bare-*.log")
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512}
	return &bareLoop{
		telegram: telegram + "/bot" + token, model: model, sync: mode, log: f,
		http: &http.Client{Transport: tr, Timeout: 70 * time.Second},
	}, nil
}

// run polls until ctx is done.
func (b *bareLoop) run(ctx context.Context) error {
	defer b.log.Close()
	defer b.http.CloseIdleConnections()
	var wg sync.WaitGroup
	defer wg.Wait()
	for next := int64(0); ctx.Err() == nil; {
		updates, err := b.poll(ctx, next)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := b.keep(updates); err != nil {
			return err
		}
		for _, u := range updates {
			next = u.ID + 1
			wg.Go(func() {
				if err := b.answer(ctx, u); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "claybench: bare loop:", err)
				}
			})
		}
	}
	return nil
}

func (b *bareLoop) poll(ctx context.Context, offset int64) ([]update, error) {
	body, err := b.post(ctx, b.telegram+"/getUpdates", map[string]any{"offset": offset, "timeout": 50, "limit": 100})
	if err != nil {
		return nil, err
	}
	return decodeUpdates(body)
}

// keep makes the updates as durable as the mode asks.
func (b *bareLoop) keep(updates []update) error {
	if b.sync == syncNever {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range updates {
		if _, err := fmt.Fprintf(b.log, "%d %d %s\n", u.ID, u.Message.Chat.ID, u.Message.Text); err != nil {
			return err
		}
		if b.sync == syncEach {
			if err := b.log.Sync(); err != nil {
				return err
			}
		}
	}
	return b.log.Sync()
}

func (b *bareLoop) answer(ctx context.Context, u update) error {
	text, err := b.post(ctx, b.model+"/chat/completions", map[string]any{
		"model": "bench", "stream": true,
		"messages": []map[string]string{{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": u.Message.Text}},
	})
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte("[DONE]")) {
		return errors.New("the model's answer was cut")
	}
	_, err = b.post(ctx, b.telegram+"/sendMessage", map[string]any{"chat_id": u.Message.Chat.ID, "text": "ok"})
	return err
}

// post sends v and returns the body of the answer.
func (b *bareLoop) post(ctx context.Context, url string, v any) (answer []byte, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}
