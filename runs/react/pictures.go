package react

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// shown are messages with the pictures among their files. What cannot be opened
// stays a line of text.
func (p *pass) shown(ctx context.Context, messages []llm.Message) []llm.Message {
	if p.turn.Files == nil {
		return messages
	}
	if p.album == nil {
		p.album = llm.NewAlbum(func(f claybot.FileReference) ([]byte, error) { return p.picture(ctx, f) })
	}
	return p.album.Show(messages)
}

var errLargePicture = errors.New("the picture is too large")

// picture reads a file of the agent.
func (p *pass) picture(ctx context.Context, f claybot.FileReference) ([]byte, error) {
	r, err := p.turn.Files.OpenFile(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, llm.MaxPicture+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.ID, err)
	case len(b) > llm.MaxPicture:
		return nil, errLargePicture
	}
	return b, nil
}
