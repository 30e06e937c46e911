package web

import (
	"context"

	"github.com/claybot/claybot/storage"
)

// Notes reads and changes what agents remember beyond their conversation.
type Notes interface {
	// Notes lists the notes of a scope: agent/<id>, owner/<owner> or global.
	Notes(ctx context.Context, scope string) ([]storage.Memory, error)
	Note(ctx context.Context, scope, path string) (storage.Memory, error)
	SaveNote(ctx context.Context, scope, path, text, by string) error
	DropNote(ctx context.Context, scope, path, by string) error
	FindNotes(ctx context.Context, scope, query string) ([]storage.FoundMemory, error)
}

// NoteHistory lists and restores versions of notes.
type NoteHistory interface {
	// NoteVersions lists the versions of a note, or of all notes of the scope when
	// path is empty, the newest first.
	NoteVersions(ctx context.Context, scope, path string) ([]storage.MemoryVersion, error)
	// RevertNote restores an earlier version of a note.
	RevertNote(ctx context.Context, scope string, version int64, by string) error
}

// A NoteList is the notes of a scope.
type NoteList struct {
	Notes []storage.Memory `json:"notes" doc:"The notes, without their texts."`
}

// A FoundNotes is what a search for notes found.
type FoundNotes struct {
	Notes []storage.FoundMemory `json:"notes" doc:"Best match first."`
}

// A NoteText is the new text of a note.
type NoteText struct {
	Text string `json:"text" doc:"The whole note, in Markdown."`
}

// A NoteVersions is the versions of a note or of a scope.
type NoteVersions struct {
	Versions []storage.MemoryVersion `json:"versions" doc:"Newest first."`
}

// A NoteRevert restores an earlier version of a note.
type NoteRevert struct {
	Scope   string `json:"scope" doc:"agent/<id>, owner/<owner> or global."`
	Version int64  `json:"version"`
}
