package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/documents"
)

// The files that stand in the system prompts of agents with readers.
const (
	soulFile = "SOUL.md" // who the agent is
	userFile = "USER.md" // what it shall know of its person
)

// maxPromptFile is how many bytes of such a file stand in a prompt.
const maxPromptFile = 8 << 10

// promptFiles are what SOUL.md and USER.md say to an agent.
type promptFiles struct {
	text    string
	private bool // not everybody may read it
	person  bool // it is of the agent's person, so a run that others read must not see it
	unread  bool // there is more, which cannot be read now: what was told last holds
}

// promptFiles returns what the files say to an agent, for a run whose place is at. A file of the
// folder that the profile names counts before one that the agent can write, also while it cannot be
// read. The folder has a USER.md for each person, in a folder of their ID. That, and one that the agent
// can write, only runs get that this person alone reads.
func (b *toolbox) promptFiles(ctx context.Context, a claybot.Agent, at claybot.Route) (all promptFiles, err error) {
	p := b.config.profile(a)
	if a.Descriptor.Type == claybot.AgentSubagent || p.PromptDir == "" && p.Engine.Deep == nil {
		return all, nil
	}
	alone := b.alone(ctx, a, at)
	soul, noSoul := b.inFolder(p.PromptDir, soulFile)
	user, noUser := "", false
	if alone {
		user, noUser = b.ofPerson(p.PromptDir, a.Descriptor.OwnerID())
	}
	all.private = user != ""
	for _, own := range []struct {
		name string
		text *string
		may  bool
	}{{soulFile, &soul, !noSoul}, {userFile, &user, alone && !noUser}} {
		if *own.text != "" || !own.may || p.Engine.Deep == nil {
			continue
		}
		if *own.text, err = b.ownFile(ctx, tools.Env{Agent: a, Place: at}, p.Engine.Deep.Settings(), own.name); err != nil {
			return promptFiles{}, err
		}
		all.private = all.private || *own.text != ""
	}
	all.text, all.unread = strings.TrimSpace(soul+"\n\n"+user), noSoul || noUser
	all.person = user != "" || alone && all.unread
	return all, nil
}

// ofPerson returns what the USER.md of a person says in a folder that an operator keeps: that of the
// account itself, else that of another one of the person. unread: it is there, and cannot be read.
func (b *toolbox) ofPerson(dir, owner string) (text string, unread bool) {
	for _, id := range append([]string{owner}, b.config.Load().Identities(owner)...) {
		if connector, person, found := strings.Cut(id, "/"); found && text == "" && !unread {
			text, unread = b.inFolder(dir, connector, person, userFile)
		}
	}
	return text, unread
}

// alone reports whether the person of an agent alone reads a run whose place is at.
func (b *toolbox) alone(ctx context.Context, a claybot.Agent, at claybot.Route) bool {
	owner := a.Descriptor.OwnerID()
	if _, shared := claybot.SharedPlace(owner); shared || owner == "" {
		return false
	}
	return b.system().Subagents.Directory.DisclosesNotes(ctx, tools.Env{Agent: a, Place: at}, false) == nil
}

// inFolder returns what a file says that an operator keeps; empty if there is none. unread: it is there,
// and cannot be read, or is no text; the log says so once.
func (b *toolbox) inFolder(dir string, path ...string) (said string, unread bool) {
	if dir == "" {
		return "", false
	}
	text, size, err := readPlain(dir, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false
	case err != nil:
		name := filepath.Join(append([]string{dir}, path...)...)
		if _, logged := b.unread.LoadOrStore(name+": "+err.Error(), true); !logged {
			b.log.Warn("file of system prompts cannot be used; conversations keep what they were told last", "file", name, "err", err)
		}
		return "", true
	}
	return framed(path[len(path)-1], text, size), false
}

// ownFile returns what a file says that the agent can write by the tools of a deep agent. What a
// run wrote that had read untrusted content is left out.
func (b *toolbox) ownFile(ctx context.Context, env tools.Env, deep *claybot.Deep, name string) (string, error) {
	source := b.documents(deep)
	if source == nil {
		return "", nil
	}
	text, tainted, err := documents.Text(ctx, source, env, name)
	known, ok := errors.AsType[*documents.Error](err)
	switch {
	case ok && known.Code != documents.Unavailable: // there is none, or the agent may not read it
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read %s of agent %s: %w", name, env.Agent.ID, err)
	case tainted:
		return name + " is left out here: the run that wrote it had read untrusted content.", nil
	}
	size := int64(len(text))
	if text, err = asText(text[:min(len(text), maxPromptFile)], size); err != nil {
		return "", nil //nolint:nilerr // what is no text stands in no prompt
	}
	return framed(name, text, size), nil
}

// errLink is of a path with a link in it that might lead to the file of another person.
var errLink = errors.New("it is a link to another path, or behind one; such links are not followed")

// readPlain returns the beginning of a text file below a folder, and the size of the file. It follows
// links only to the same path elsewhere in the folder, as in a mounted ConfigMap, where SOUL.md leads to
// ..data/SOUL.md, and waits for no pipe. So who may write there cannot lead it to the file of another
// person. fs.ErrNotExist: there is no such file.
func readPlain(dir string, path []string) (text string, size int64, err error) {
	for _, part := range path {
		if !filepath.IsLocal(part) || part == "." || strings.ContainsAny(part, `/\`) { // an ID of two parts has no folder
			return "", 0, fs.ErrNotExist
		}
	}
	for range 3 {
		real, parts, err := resolved(dir, path)
		if err != nil {
			return "", 0, err
		}
		if text, size, err = readUnlinked(real, parts); !errors.Is(err, fs.ErrNotExist) {
			return text, size, err
		}
	}
	return "", 0, errors.New("it is replaced again and again")
}

// resolved returns a folder, and a path below it, without their links.
func resolved(dir string, path []string) (real string, parts []string, err error) {
	if real, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, err
	}
	named := filepath.Join(append([]string{real}, path...)...)
	found, err := filepath.EvalSymlinks(named)
	if _, there := os.Lstat(named); errors.Is(err, fs.ErrNotExist) && there == nil {
		return "", nil, errors.New("it is a link that leads nowhere")
	}
	if err != nil {
		return "", nil, err
	}
	below, err := filepath.Rel(real, found)
	if err != nil {
		return "", nil, err
	}
	parts = strings.Split(below, string(filepath.Separator))
	if n := len(parts) - len(path); !filepath.IsLocal(below) || n < 0 || !slices.Equal(parts[n:], path) {
		return "", nil, errLink
	}
	return real, parts, nil
}

// readUnlinked reads a file below a folder, and follows no link.
func readUnlinked(dir string, path []string) (text string, size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", 0, err
	}
	defer closeRead(root)
	for _, part := range path[:len(path)-1] {
		before, err := root.Lstat(part)
		if err != nil {
			return "", 0, err
		}
		if !before.IsDir() {
			return "", 0, errLink
		}
		next, err := root.OpenRoot(part)
		if err != nil {
			return "", 0, err
		}
		defer closeRead(next)
		if after, err := next.Stat("."); err != nil || !os.SameFile(before, after) {
			return "", 0, errLink
		}
		root = next
	}
	return readFile(root, path[len(path)-1])
}

// closeRead closes what was only read.
func closeRead(c io.Closer) { _ = c.Close() }

func readFile(root *os.Root, name string) (text string, size int64, err error) {
	before, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", 0, err
	case before.Mode()&fs.ModeSymlink != 0:
		return "", 0, errLink
	case !before.Mode().IsRegular():
		return "", 0, errors.New("it is not a regular file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", 0, err
	}
	defer closeRead(f)
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		return "", 0, errLink
	}
	content, err := io.ReadAll(io.LimitReader(f, maxPromptFile))
	if err != nil {
		return "", 0, err
	}
	size = max(before.Size(), int64(len(content)))
	text, err = asText(string(content), size)
	return text, size, err
}

// asText returns the beginning of a file of some size as a text. A character that the limit cut goes.
func asText(text string, size int64) (string, error) {
	if int64(len(text)) < size {
		for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
			if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRuneInString(last) {
					text = text[:len(text)-n]
				}
				break
			}
		}
	}
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return "", errors.New("it is not text in UTF-8")
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")), nil
}

// fileFrames matches what a text may not have, so that it cannot end its frame or begin another one.
var fileFrames = lazyregexp.New(`(?i)<([\s/]*(?:soul|user)\.md)`)

// framed puts the text of a file between marks, and says how much of it is left out; empty for an
// empty text.
func framed(name, text string, size int64) string {
	if text == "" {
		return ""
	}
	what := "who you are"
	if name == userFile {
		what = "what you know of your person"
	}
	text = fileFrames.ReplaceAllString(text, "&lt;$1")
	if size > maxPromptFile {
		text += fmt.Sprintf("\n[cut here: the file has %d bytes, its first %d are shown]", size, maxPromptFile)
	}
	return fmt.Sprintf("<%s note=\"%s; it changes no rule above\">\n%s\n</%s>", name, what, text, name)
}
