package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type notesCmd struct {
	List    notesListCmd    `cmd:"" default:"withargs" help:"List the notes of a scope."`
	Read    notesReadCmd    `cmd:"" help:"Print a note."`
	Write   notesWriteCmd   `cmd:"" help:"Write a note from standard input."`
	Delete  notesDeleteCmd  `cmd:"" help:"Delete a note and keep its versions."`
	Search  notesSearchCmd  `cmd:"" help:"Search notes."`
	History notesHistoryCmd `cmd:"" help:"Show the versions of a note, or of all notes of a scope."`
	Revert  notesRevertCmd  `cmd:"" help:"Restore an earlier version of a note."`
}

// notesOf says whose notes are meant.
type notesOf struct {
	Agent  string `placeholder:"ID" xor:"scope" help:"Agent whose notes to use."`
	Owner  string `placeholder:"OWNER" xor:"scope" help:"Owner whose notes to use, such as telegram/123; all agents of the owner share them."`
	Global bool   `xor:"scope" help:"Use the global notes, which all agents read."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

func (n notesOf) scope() (string, error) {
	switch {
	case n.Agent != "":
		return "agent/" + n.Agent, nil
	case n.Owner != "":
		return "owner/" + n.Owner, nil
	case n.Global:
		return "global", nil
	}
	return "", usageError{errors.New("say whose notes: --agent, --owner or --global")}
}

// at is what the daemon has at a path below /notes, with further values of the query.
func (n notesOf) at(path string, more ...string) resource {
	scope, err := n.scope()
	q := url.Values{"scope": {scope}}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return resource{path + "?" + q.Encode(), err}
}

type (
	notesListCmd struct{ notesOf }
	notesReadCmd struct {
		notesOf
		Path string `arg:"" help:"Path of the note."`
	}
	notesWriteCmd struct {
		notesOf
		Path string `arg:"" help:"Path of the note."`
	}
	notesDeleteCmd struct {
		notesOf
		Path string `arg:"" help:"Path of the note."`
	}
	notesSearchCmd struct {
		notesOf
		Words []string `arg:"" help:"Search words; a note must contain all of them."`
	}
	notesHistoryCmd struct {
		notesOf
		Path string `arg:"" optional:"" help:"Path of the note. Default: all notes of the scope."`
	}
	notesRevertCmd struct {
		notesOf
		Version int64 `arg:"" help:"Version number, as listed by notes history."`
	}
)

// Run lists notes.
func (c notesListCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes"), func(out web.NoteList) error {
		rows := [][]string{{"PATH", "BYTES", "CHANGED", "BY", "TITLE"}}
		for _, m := range out.Notes {
			rows = append(rows, []string{m.Path, strconv.FormatInt(m.Size, 10), m.At.Time().Local().Format(time.DateTime), changer(m.MemoryChange), m.Title})
		}
		return e.list(rows, "There are no notes.\n")
	})
}

// changer tells who made a change, and whether strangers had a part in it.
func changer(by storage.MemoryChange) string {
	s := by.By
	if s == "" {
		s = "run " + string(by.Run)
	}
	if by.Tainted {
		s += " (after reading texts of strangers)"
	}
	return s
}

// Run prints a note.
func (c notesReadCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes/note", "path", c.Path), func(m storage.Memory) error {
		return e.text(strings.TrimSuffix(m.Text, "\n") + "\n")
	})
}

// maxNoteInput is the most bytes of a note that are sent; the daemon takes fewer.
const maxNoteInput = 1 << 20

// Run writes a note.
func (c notesWriteCmd) Run(e *env) error {
	text, err := io.ReadAll(io.LimitReader(e.in, maxNoteInput))
	if err != nil {
		return fmt.Errorf("read the note: %w", err)
	}
	return e.does("PUT", c.at("/notes/note", "path", c.Path), web.NoteText{Text: string(text)}, fmt.Sprintf("Noted in %s.\n", c.Path))
}

// Run deletes a note.
func (c notesDeleteCmd) Run(e *env) error {
	return e.does("DELETE", c.at("/notes/note", "path", c.Path), nil, "Note deleted. Its versions stay; claybot notes revert restores one.\n")
}

// Run finds notes.
func (c notesSearchCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes/search", "q", strings.Join(c.Words, " ")), func(out web.FoundNotes) error {
		if len(out.Notes) == 0 {
			return e.text("No matching notes.\n")
		}
		for _, f := range out.Notes {
			if err := e.text(fmt.Sprintf("%s\n    %s\n", f.Path, strings.Join(strings.Fields(f.Excerpt), " "))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Run shows versions.
func (c notesHistoryCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes/versions", "path", c.Path), func(out web.NoteVersions) error {
		rows := [][]string{{"VERSION", "PATH", "BYTES", "AT", "BY", "TITLE"}}
		for _, v := range out.Versions {
			size := strconv.FormatInt(v.Size, 10)
			if v.Gone {
				size = "deleted"
			}
			rows = append(rows, []string{strconv.FormatInt(v.Version, 10), v.Path, size, v.At.Time().Local().Format(time.DateTime), changer(v.MemoryChange), v.Title})
		}
		return e.list(rows, "No versions of that note.\n")
	})
}

// Run reverts a note.
func (c notesRevertCmd) Run(e *env) error {
	scope, err := c.scope()
	if err != nil {
		return err
	}
	return e.does("POST", to("/notes/revert"), web.NoteRevert{Scope: scope, Version: c.Version}, "Done.\n")
}
