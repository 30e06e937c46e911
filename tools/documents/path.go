package documents

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPath = 4096
	maxPart = 255
)

// reserved begins the names of files that are being written; a backend that
// needs such files never lists them, and no backend has others of that name.
const reserved = ".claybot-"

// clean checks the path of a file and returns its one form. "./a" is "a".
func clean(path string) (string, error) {
	p, err := cleanFolder(path)
	if err != nil {
		return "", err
	}
	if p == "" {
		return "", fail(Invalid, "field path: want the path of a file, such as notes/plan.md")
	}
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") {
		return "", fail(Invalid, "field path: %.200q names a folder, not a file", path)
	}
	return p, nil
}

// cleanFolder checks the path of a folder and returns its one form, empty for
// the top. One slash at the end is no part of it.
func cleanFolder(path string) (string, error) {
	switch {
	case len(path) > maxPath:
		return "", fail(Invalid, "field path: %d bytes, the limit is %d", len(path), maxPath)
	case !utf8.ValidString(path):
		return "", fail(Invalid, "field path: %.200q is not UTF-8", path)
	case strings.ContainsFunc(path, unicode.IsControl): // NUL as well
		return "", fail(Invalid, "field path: %.200q has a control character", path)
	case strings.HasPrefix(path, "/"):
		return "", fail(Invalid, "field path: %.200q must be relative, without a slash at the beginning", path)
	}
	if path == "" {
		return "", nil
	}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		switch {
		case part == "":
			return "", fail(Invalid, "field path: %.200q has an empty part", path)
		case part == ".":
			continue
		case part == "..":
			return "", fail(Invalid, "field path: %.200q must not contain ..", path)
		case len(part) > maxPart:
			return "", fail(Invalid, "field path: a part has %d bytes, the limit is %d", len(part), maxPart)
		case strings.HasPrefix(part, reserved):
			return "", fail(Invalid, "field path: names that begin with %s are taken", reserved)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/"), nil
}

// above yields the folders that a path lies in, the top one left out: for a/b/c
// that is a, a/b.
func above(path string) []string {
	var all []string
	for i, c := range path {
		if c == '/' {
			all = append(all, path[:i])
		}
	}
	return all
}
