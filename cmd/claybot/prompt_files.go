package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
}

// promptFiles returns what the files say to an agent, for a run whose place is at. A file of the
// folder that the profile names counts before one that the agent can write. The folder has a USER.md for
// each person, in a folder of their ID, which only runs get that this person alone reads.
func (b *toolbox) promptFiles(ctx context.Context, a claybot.Agent, at claybot.Route) (all promptFiles, err error) {
	p := b.config.profile(a)
	if a.Descriptor.Type == claybot.AgentSubagent || p.PromptDir == "" && p.Engine.Deep == nil {
		return all, nil
	}
	soul, user := b.inFolder(p.PromptDir, soulFile), ""
	if p.PromptDir != "" && b.alone(ctx, a, at) {
		owner := a.Descriptor.OwnerID()
		for _, id := range append([]string{owner}, b.config.Load().Identities(owner)...) {
			if connector, person, found := strings.Cut(id, "/"); found && user == "" {
				user = b.inFolder(p.PromptDir, connector, person, userFile)
			}
		}
	}
	all.person, all.private = user != "", user != ""
	for _, own := range []struct {
		name string
		text *string
	}{{soulFile, &soul}, {userFile, &user}} {
		if *own.text != "" || p.Engine.Deep == nil {
			continue
		}
		if *own.text, err = b.ownFile(ctx, tools.Env{Agent: a, Place: at}, p.Engine.Deep.Settings(), own.name); err != nil {
			return promptFiles{}, err
		}
		all.private = all.private || *own.text != ""
	}
	all.text = strings.TrimSpace(soul + "\n\n" + user)
	return all, nil
}

// alone reports whether the person of an agent alone reads a run whose place is at.
func (b *toolbox) alone(ctx context.Context, a claybot.Agent, at claybot.Route) bool {
	owner := a.Descriptor.OwnerID()
	if _, shared := claybot.SharedPlace(owner); shared || owner == "" {
		return false
	}
	return b.system().Subagents.Directory.DisclosesNotes(ctx, tools.Env{Agent: a, Place: at}, false) == nil
}

// inFolder returns what a file says that an operator keeps; empty if there is none. One that is no
// text is left out, with a line in the log.
func (b *toolbox) inFolder(dir string, path ...string) string {
	if dir == "" {
		return ""
	}
	text, size, err := readPlain(dir, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		name := filepath.Join(append([]string{dir}, path...)...)
		if _, logged := b.unread.LoadOrStore(name+": "+err.Error(), true); !logged {
			b.log.Warn("file left out of system prompts", "file", name, "err", err)
		}
		return ""
	}
	return framed(path[len(path)-1], text, size)
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
		return name + " is left out here: it was written under the influence of untrusted content.", nil
	}
	size := int64(len(text))
	if text, err = asText(text[:min(len(text), maxPromptFile)], size); err != nil {
		return "", nil //nolint:nilerr // what is no text stands in no prompt
	}
	return framed(name, text, size), nil
}

// errLink is of a path with a link in it, which might lead to the file of another person.
var errLink = errors.New("it is a link, or behind one; links are not followed")

// readPlain returns the beginning of a text file below a folder, and the size of the file. It follows no
// link and waits for no pipe, so whoever may write there cannot lead it elsewhere.
func readPlain(dir string, path []string) (text string, size int64, err error) {
	for _, part := range path {
		if !filepath.IsLocal(part) || part == "." || strings.ContainsAny(part, `/\`) { // an ID of two parts has no folder
			return "", 0, fs.ErrNotExist
		}
	}
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
