package telegram

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A Bot API server of one's own, in its mode --local, downloads files without a size limit and
// names them by absolute paths, and takes files up to 2,000 MB
// (core.telegram.org/bots/api#using-a-local-bot-api-server, read 2026-11-28).

// maxUpload is the size of the largest file that the server takes.
func (c *Connector) maxUpload() int64 {
	if c.cfg.LocalFiles != "" {
		return maxLocalUploadBytes
	}
	return maxUploadBytes
}

// openLocal opens a file that the server has downloaded, if it lies in the configured
// directory. The path comes from the server: it is never followed out of that directory, not by
// links either, and only a regular file is read.
func (c *Connector) openLocal(path string) (io.ReadCloser, error) {
	refuse := func(format string, args ...any) error {
		return &connectors.RefusedError{Text: texts.TelegramFileGone, Err: fmt.Errorf("telegram: getFile: "+format, args...)}
	}
	if c.cfg.LocalFiles == "" {
		return nil, refuse("the Bot API server runs with --local: set local_files to its directory")
	}
	at, err := filepath.Rel(c.cfg.LocalFiles, path)
	if err != nil || !filepath.IsLocal(at) {
		return nil, refuse("the server names a file outside of local_files %q", c.cfg.LocalFiles)
	}
	root, err := os.OpenRoot(c.cfg.LocalFiles)
	if err != nil {
		return nil, fmt.Errorf("telegram: local_files: %w", err) // such as a mount that is missing for now
	}
	defer root.Close()                                                // what was opened stays open
	file, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("telegram: local_files: claybot's user must be able to read it: %w", err)
	}
	if err != nil {
		return nil, refuse("%w", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // it is not read
		return nil, refuse("the server names something that is no file")
	}
	return file, nil
}
