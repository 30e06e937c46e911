package web

import (
	"context"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
)

// Files stores the files that people send to agents.
type Files interface {
	// SaveFile stores a file for an agent; StartRun takes its reference with a
	// message to the same agent. It returns storage.ErrTooMany beyond
	// inbox.MaxFile bytes.
	SaveFile(ctx context.Context, to agentsystem.Address, f claybot.FileReference, content io.Reader) (claybot.FileReference, error)
	// SaveFiles stores the files of one message, all or none if they exceed the quota; see
	// agentsystem.Attachments.
	SaveFiles(ctx context.Context, to agentsystem.Address, files []agentsystem.SentFile) ([]claybot.FileReference, error)
	OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error)
}

// A FileGiven is a file that goes with a message: one that was sent before, by
// its id, or its content.
type FileGiven struct {
	ID       string `json:"id,omitempty" doc:"The id of a file that the agent has; see POST /agents/{agent}/files."`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	Data     []byte `json:"data,omitempty" doc:"The content in base64, instead of id."`
}

// A FileView is a file of an agent.
type FileView struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size" doc:"In bytes."`
	SHA256   string `json:"sha256"`
}
