package service

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// quoted are the characters that have a meaning within the double quotes of an environment
// file: systemd.exec(5), EnvironmentFile=.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`)

const environmentHead = `# The variables of the claybot service, some of which are secrets. "claybot service install"
# sets those that its own environment has, and keeps the others.
`

// environmentText returns an environment file of systemd.
func environmentText(env map[string]string) string {
	var b strings.Builder
	b.WriteString(environmentHead)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, quoted.Replace(env[name]))
	}
	return b.String()
}

// readEnvironment reads a file that environmentText has written, perhaps edited by hand: a
// variable on each line, in double quotes, single quotes or none. Without a file there
// are no variables.
func readEnvironment(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	env, n := make(map[string]string), 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, fmt.Errorf("%s:%d: want NAME=\"value\"", path, n) // the line may be a secret
		}
		if env[name], ok = unquote(strings.TrimSpace(value)); !ok {
			return nil, fmt.Errorf("%s:%d: the value of %s has a quote that does not end", path, n, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return env, nil
}

// unquote returns a value without its quotes; false for a quote that does not end on its
// line.
func unquote(value string) (string, bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return value, true
	}
	if len(value) < 2 || value[len(value)-1] != value[0] {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if value[0] == '\'' {
		return inner, true
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' && i+1 < len(inner) && strings.IndexByte("\\\"`$", inner[i+1]) >= 0 {
			i++
		}
		b.WriteByte(inner[i])
	}
	return b.String(), true
}
