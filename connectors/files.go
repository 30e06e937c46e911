package connectors

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
)

// FileID is the id of a file that a platform has, made of what the platform
// calls it: the same file has the same id whenever it comes, so an agent fetches
// and keeps it once. It has the form of all ids of files.
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

// FileLine is a file in words, for a line between brackets: its kind, its name
// where it has one of its own, and how large or long it is.
func FileLine(f claybot.FileReference) string {
	line := string(f.Kind)
	switch f.Kind {
	case claybot.FileVoice:
		return "voice message" + length(f)
	case "":
		line = "file"
	}
	if name := OneLine(noBrackets.Replace(f.Name), maxFileName); name != "" {
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

// FilesLine is what came with a message that has no text, in words; empty for none.
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

// maxFileName is how much of a name stands in a line, in characters.
const maxFileName = 100

var noBrackets = strings.NewReplacer("[", " ", "]", " ")

// length is how long a recording is, as ", 0:12".
func length(f claybot.FileReference) string {
	if f.Seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d:%02d", f.Seconds/60, f.Seconds%60)
}

// FileSize is a number of bytes for people, such as 1.2 MB.
func FileSize(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}
