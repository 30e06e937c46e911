package connectors

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
)

// FileID derives the id of a file from the identifiers that the platform uses
// for it. The same file always has the same id, so an agent fetches and stores
// it once.
func FileID(parts ...string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	id := make([]byte, 24)
	id[0] = letters[sum[0]%26]
	for i := 1; i < len(id); i++ {
		id[i] = letters[sum[i]%36]
	}
	return string(id)
}

// KindOf returns the kind of a file of a MIME type.
func KindOf(mimeType string) claybot.FileKind {
	switch major, _, _ := strings.Cut(mimeType, "/"); major {
	case "image":
		return claybot.FilePhoto
	case "audio":
		return claybot.FileAudio
	case "video":
		return claybot.FileVideo
	}
	return claybot.FileDocument
}

// FileLine describes a file in one line, shown between brackets: its kind, its
// name if it has one, and its size or duration.
func FileLine(f claybot.FileReference) string {
	line := string(f.Kind)
	switch f.Kind {
	case claybot.FileVoice:
		return "voice message" + length(f)
	case "":
		line = "file"
	}
	if name := InBrackets(f.Name, maxFileName); name != "" {
		line += " " + name
	}
	if f.Seconds > 0 {
		return line + length(f)
	}
	if f.Size > 0 {
		line += ", " + FileSize(f.Size)
	}
	return line
}

// FilesLine describes the files of a message without text; it is empty if there are
// none.
func FilesLine(files []claybot.FileReference) string {
	const most = 3
	var all []string
	for _, f := range files[:min(len(files), most)] {
		all = append(all, FileLine(f))
	}
	if len(files) > most {
		all = append(all, fmt.Sprintf("%d more files", len(files)-most))
	}
	return strings.Join(all, "; ")
}

// maxFileName is the maximum length of a name in a line, in characters.
const maxFileName = 100

var noBrackets = strings.NewReplacer("[", " ", "]", " ")

// length returns the duration of a recording, such as ", 0:12".
func length(f claybot.FileReference) string {
	if f.Seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d:%02d", f.Seconds/60, f.Seconds%60)
}

// FileSize formats a number of bytes for display, such as 1.2 MB.
func FileSize(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}
