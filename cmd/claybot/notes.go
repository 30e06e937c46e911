package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type notesCmd struct {
	List    notesListCmd    `cmd:"" default:"withargs" eg:"notes --owner telegram/123456789" help:"List the notes of a scope."`
	Read    notesReadCmd    `cmd:"" eg:"notes read plan.md --agent AGENT" help:"Print a note."`
	Write   notesWriteCmd   `cmd:"" eg:"notes write rules.md --global < rules.md" help:"Write a note from standard input."`
	Delete  notesDeleteCmd  `cmd:"" eg:"notes delete plan.md --agent AGENT" help:"Delete a note and keep its versions."`
	Search  notesSearchCmd  `cmd:"" eg:"notes search berlin hotel --owner telegram/123456789" help:"Search notes."`
	History notesHistoryCmd `cmd:"" eg:"notes history plan.md --agent AGENT" help:"Show the versions of a note, or of all notes of a scope."`
	Revert  notesRevertCmd  `cmd:"" eg:"notes revert 42 --agent AGENT" help:"Restore an earlier version of a note."`
}

// notesOf selects whose notes to use.
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
	return "", usageError{errors.New("select the notes: --agent, --owner or --global")}
}

// at is a resource below /notes with further values of the query.
func (n notesOf) at(path string, q url.Values) resource {
	scope, err := n.scope()
	q.Set("scope", scope)
	return resource{path, err}.with(q)
}

func (n notesOf) note(path string) resource { return n.at("/notes/note", url.Values{"path": {path}}) }

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
	return show(e, c.JSON, c.at("/notes", url.Values{}), func(out web.NoteList) error {
		return e.list("PATH,BYTES,CHANGED,BY,TITLE", "There are no notes.\n", each(out.Notes, func(m storage.Memory) []string {
			return []string{m.Path, strconv.FormatInt(m.Size, 10), moment(m.At.Time()), changer(m.MemoryChange), m.Title}
		}))
	})
}

// changer says who made a change, and whether untrusted content may have influenced it.
func changer(by storage.MemoryChange) string {
	s := by.By
	if s == "" {
		s = "run " + string(by.Run)
	}
	if by.Tainted {
		s += " (after reading untrusted content)"
	}
	return s
}

// Run prints a note.
func (c notesReadCmd) Run(e *env) error {
	return show(e, c.JSON, c.note(c.Path), func(m storage.Memory) error {
		return e.text(strings.TrimSuffix(m.Text, "\n") + "\n")
	})
}

// maxNoteInput is the most bytes of a note that are sent; the daemon accepts fewer.
const maxNoteInput = 1 << 20

// Run writes a note.
func (c notesWriteCmd) Run(e *env) error {
	text, err := io.ReadAll(io.LimitReader(e.in, maxNoteInput))
	if err != nil {
		return fmt.Errorf("read the note: %w", err)
	}
	return e.does("PUT", c.note(c.Path), web.NoteText{Text: string(text)}, fmt.Sprintf("Wrote %s.\n", c.Path))
}

// Run deletes a note.
func (c notesDeleteCmd) Run(e *env) error {
	return e.does("DELETE", c.note(c.Path), nil, "Note deleted. Its versions stay; claybot notes revert restores one.\n")
}

// Run searches notes.
func (c notesSearchCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes/search", url.Values{"q": {strings.Join(c.Words, " ")}}), func(out web.FoundNotes) error {
		if len(out.Notes) == 0 {
			return e.text("No matching notes.\n")
		}
		var b strings.Builder
		for _, f := range out.Notes {
			fmt.Fprintf(&b, "%s\n    %s\n", f.Path, strings.Join(strings.Fields(f.Excerpt), " "))
		}
		return e.text(b.String())
	})
}

// Run shows versions.
func (c notesHistoryCmd) Run(e *env) error {
	return show(e, c.JSON, c.at("/notes/versions", url.Values{"path": {c.Path}}), func(out web.NoteVersions) error {
		return e.list("VERSION,PATH,BYTES,AT,BY,TITLE", "No versions of that note.\n", each(out.Versions, func(v storage.MemoryVersion) []string {
			size := strconv.FormatInt(v.Size, 10)
			if v.Gone {
				size = "deleted"
			}
			return []string{strconv.FormatInt(v.Version, 10), v.Path, size, moment(v.At.Time()), changer(v.MemoryChange), v.Title}
		}))
	})
}

// Run reverts a note.
func (c notesRevertCmd) Run(e *env) error {
	scope, err := c.scope()
	return e.does("POST", at("/notes/revert", err), web.NoteRevert{Scope: scope, Version: c.Version}, "Version restored.\n")
}
