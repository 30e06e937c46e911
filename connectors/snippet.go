package connectors

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/claybot/claybot"
)

// A Snippeter shows long code as a file that people read in the chat. Optional.
type Snippeter interface {
	Sender
	FileSender
	// TakesSnippets reports whether it shows code so now. It must not block.
	TakesSnippets() bool
}

// codeType is the type of a file that has the code of a reply.
const codeType = "text/plain"

// codeEnds are the ends of the names of files by what the fence of code says of its language. Every other language
// has txt.
var codeEnds = map[string]string{
	"bash": "sh", "sh": "sh", "shell": "sh", "c": "c", "c++": "cpp", "cpp": "cpp", "csharp": "cs", "cs": "cs", "css": "css", "diff": "diff",
	"go": "go", "golang": "go", "html": "html", "java": "java", "javascript": "js", "js": "js", "json": "json", "kotlin": "kt",
	"lua": "lua", "markdown": "md", "md": "md", "perl": "pl", "php": "php", "python": "py", "py": "py", "r": "r", "ruby": "rb", "rust": "rs",
	"scala": "scala", "sql": "sql", "swift": "swift", "toml": "toml", "typescript": "ts", "ts": "ts", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}

// CodeFile describes the file with the n-th code of a reply, from 1. It has no id yet.
func CodeFile(c CodeBlock, n int) claybot.FileReference {
	name := "code"
	if n > 1 {
		name = fmt.Sprint("code-", n)
	}
	return claybot.FileReference{
		Name: name + "." + cmp.Or(codeEnds[strings.ToLower(c.Lang)], "txt"), MIMEType: codeType, Kind: claybot.FileDocument,
	}
}

// ReplyText returns the Markdown of a file of a reply with this content: code is a fence.
func ReplyText(f claybot.FileReference, content string) string {
	if f.MIMEType != codeType {
		return content
	}
	return Fenced(strings.TrimPrefix(path.Ext(f.Name), "."), content)
}

// Fenced returns code as a fence of Markdown that nothing in it closes. lang may be empty.
func Fenced(lang, code string) string {
	mark := "```"
	for strings.Contains(code, mark) {
		mark += "`"
	}
	return mark + lang + "\n" + strings.TrimRight(code, "\n") + "\n" + mark
}
