package workspace

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a path, in bytes.
const (
	maxPath = 4096
	maxPart = 255
)

// Clean is the one form of a path in a workspace whose directory is dir: relative
// to it, slashes between the parts, "." for the directory itself. A path that is
// absolute must begin with dir. The error has the code Outside for what leads
// out, in words, and Refused for what is no path.
//
// Links are not known here: who opens a cleaned path must not follow them out.
func Clean(dir, name string) (string, error) {
	refuse := func(code Code, format string, args ...any) (string, error) {
		return "", &Error{Code: code, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(name) > maxPath:
		return refuse(Refused, "the path has %d bytes, the limit is %d", len(name), maxPath)
	case !utf8.ValidString(name):
		return refuse(Refused, "the path %.200q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl): // NUL as well
		return refuse(Refused, "the path %.200q has a control character", name)
	}
	below := name
	if strings.HasPrefix(name, "/") {
		dir = path.Clean(dir)
		below = strings.TrimPrefix(name, dir)
		if below == name || below != "" && below[0] != '/' {
			return refuse(Outside, "%.200q is outside the workspace, whose directory is %s", name, dir)
		}
	}
	var parts []string
	for part := range strings.SplitSeq(below, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return refuse(Outside, "%.200q must not contain ..", name)
		case len(part) > maxPart:
			return refuse(Refused, "a part of the path has %d bytes, the limit is %d", len(part), maxPart)
		default:
			parts = append(parts, part)
		}
	}
	if parts == nil {
		return ".", nil
	}
	return strings.Join(parts, "/"), nil
}
