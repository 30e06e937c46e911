package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/claybot/claybot/storage"
)

var memoryTests = []storeTest{
	{"written, read, listed, changed, dropped", func(b *bed) {
		_, err := b.Memory(b.ctx, "owner/a", "food/tea.md")
		b.is(err, storage.ErrNotFound)
		by := storage.MemoryChange{Agent: "agent1", Run: "run1", Call: "c1", Tainted: true, At: 1000}
		b.noError(b.SaveMemory(b.ctx, "owner/a", storage.Memory{Path: "food/tea.md", Text: "\n# Tea \nGreen, no milk.", MemoryChange: by}, 1000))
		b.noError(b.SaveMemory(b.ctx, "owner/b", storage.Memory{Path: "food/tea.md", Text: "none"}, 1000))
		b.again()
		m := ok(b.Memory(b.ctx, "owner/a", "food/tea.md"))(b)
		b.equal("note", m, storage.Memory{Path: "food/tea.md", Title: "Tea", Text: "\n# Tea \nGreen, no milk.", Size: 23, MemoryChange: by})
		b.equal("list", len(ok(b.Memories(b.ctx, "owner/a"))(b)), 1)

		b.noError(b.SaveMemory(b.ctx, "owner/a", storage.Memory{Path: "food/tea.md", Text: "Black.", MemoryChange: storage.MemoryChange{By: "operator"}}, 1000))
		versions := ok(b.MemoryVersions(b.ctx, "owner/a", "food/tea.md", 10))(b)
		b.equal("versions", len(versions), 2)
		b.equal("newest first", versions[0].Text, "Black.")
		b.equal("no longer tainted", ok(b.Memory(b.ctx, "owner/a", "food/tea.md"))(b).Tainted, false)
		old := ok(b.MemoryVersion(b.ctx, "owner/a", versions[1].Version))(b)
		b.equal("old version", old.Text, m.Text)
		_, err = b.MemoryVersion(b.ctx, "owner/b", versions[1].Version)
		b.is(err, storage.ErrNotFound) // of another scope

		b.noError(b.DropMemory(b.ctx, "owner/a", "food/tea.md", by))
		b.is(b.DropMemory(b.ctx, "owner/a", "food/tea.md", by), storage.ErrNotFound)
		b.equal("gone", ok(b.MemoryVersions(b.ctx, "owner/a", "", 1))(b)[0].Gone, true)
		b.equal("of another scope", ok(b.Memory(b.ctx, "owner/b", "food/tea.md"))(b).Text, "none")
	}},
	{"a list is never older than a change", func(b *bed) {
		lists := func(what string, want ...string) {
			b.Helper()
			for range 2 { // the second may come from memory
				paths := []string{}
				for _, m := range ok(b.Memories(b.ctx, "s", "agent/"+string(b.agent)))(b) {
					paths = append(paths, m.Scope+":"+m.Path)
				}
				b.equal(what, paths, append([]string{}, want...))
			}
		}
		own := "agent/" + string(b.agent)
		lists("none")
		b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: "x"}, 100))
		lists("saved", "s:a")
		b.noError(b.SaveMemory(b.ctx, own, storage.Memory{Path: "c", Text: "x"}, 100))
		lists("saved in another scope", "s:a", own+":c")
		b.equal("of one scope", len(ok(b.Memories(b.ctx, "s"))(b)), 1)
		b.noError(b.ChangeMemory(b.ctx, "s", "b", storage.MemoryChange{}, 100, addLine("x")))
		lists("changed", "s:a", "s:b", own+":c")
		b.noError(b.DropMemory(b.ctx, "s", "a", storage.MemoryChange{}))
		lists("dropped", "s:b", own+":c")
		b.noError(b.UnindexAgent(b.ctx, b.agent))
		lists("without the agent", "s:b")
	}},
	{"a repeated call writes no second version", func(b *bed) {
		m := storage.Memory{Path: "a", Text: "x", MemoryChange: storage.MemoryChange{Run: "r", Call: "c"}}
		b.noError(b.SaveMemory(b.ctx, "s", m, 10))
		b.noError(b.SaveMemory(b.ctx, "s", m, 10))
		b.equal("versions", len(ok(b.MemoryVersions(b.ctx, "s", "a", 10))(b)), 1)
		m.Call = "d"
		b.noError(b.SaveMemory(b.ctx, "s", m, 10))
		b.equal("versions", len(ok(b.MemoryVersions(b.ctx, "s", "a", 10))(b)), 2)
	}},
	{"no change of many is lost", func(b *bed) {
		var all sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			all.Go(func() {
				errs[i] = b.ChangeMemory(b.ctx, "s", "a", storage.MemoryChange{Run: "r", Call: fmt.Sprint("c", i)}, 100, addLine(fmt.Sprint(i)))
			})
		}
		all.Wait()
		b.noError(errors.Join(errs...))
		b.equal("lines", strings.Count(ok(b.Memory(b.ctx, "s", "a"))(b).Text, "\n"), len(errs))
	}},
	{"a repeated change is made once", func(b *bed) {
		first, second := storage.MemoryChange{Run: "r", Call: "c", Tainted: true}, storage.MemoryChange{Run: "r2", Call: "c"}
		b.noError(b.ChangeMemory(b.ctx, "s", "a", first, 100, addLine("one")))
		b.noError(b.ChangeMemory(b.ctx, "s", "a", second, 100, addLine("two")))
		b.again()
		b.noError(b.ChangeMemory(b.ctx, "s", "a", first, 100, addLine("one")))
		m := ok(b.Memory(b.ctx, "s", "a"))(b)
		b.equal("text", m.Text, "one\ntwo\n")
		b.equal("whose", m.Run, second.Run)
		b.equal("tainted by what was there", m.Tainted, true)
		b.equal("versions", len(ok(b.MemoryVersions(b.ctx, "s", "a", 10))(b)), 2)
		b.noError(b.DropMemory(b.ctx, "s", "a", storage.MemoryChange{By: "operator"}))
		b.noError(b.ChangeMemory(b.ctx, "s", "a", second, 100, addLine("two")))
		_, err := b.Memory(b.ctx, "s", "a")
		b.is(err, storage.ErrNotFound)
		b.noError(b.ChangeMemory(b.ctx, "s", "b", second, 100, addLine("two"))) // another note
		for range 2 {                                                           // of no call: each counts
			b.noError(b.ChangeMemory(b.ctx, "s", "b", storage.MemoryChange{}, 100, addLine("x")))
		}
		b.equal("text", ok(b.Memory(b.ctx, "s", "b"))(b).Text, "two\nx\nx\n")
	}},
	{"a change that fails changes nothing", func(b *bed) {
		b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: "12345"}, 10))
		by := storage.MemoryChange{Run: "r", Call: "c"}
		wrong := errors.New("wrong")
		b.is(b.ChangeMemory(b.ctx, "s", "a", by, 10, func(storage.Memory, bool) (string, bool, error) { return "x", false, wrong }), wrong)
		b.is(b.ChangeMemory(b.ctx, "s", "a", by, 10, addLine("12345")), storage.ErrTooMany)
		if err := b.ChangeMemory(b.ctx, "s", "", by, 10, addLine("x")); err == nil {
			b.Fatal("a note without a path was made")
		}
		b.equal("text", ok(b.Memory(b.ctx, "s", "a"))(b).Text, "12345")
		b.equal("versions", len(ok(b.MemoryVersions(b.ctx, "s", "", 10))(b)), 1)
		b.noError(b.ChangeMemory(b.ctx, "s", "a", by, 10, addLine("12"))) // nothing of it was made
	}},
	{"old versions are forgotten", func(b *bed) {
		for i := range storage.MaxMemoryVersions + 5 {
			b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: fmt.Sprint(i)}, 10))
		}
		versions := ok(b.MemoryVersions(b.ctx, "s", "a", 100))(b)
		b.equal("kept", len(versions), storage.MaxMemoryVersions)
		b.equal("newest", versions[0].Text, fmt.Sprint(storage.MaxMemoryVersions+4))
	}},
	{"found by words", func(b *bed) {
		for path, text := range map[string]string{
			"a": "Ünïcode über alles, with café", "b": "the cafeteria opens at nine", "c": `quotes " and AND OR NOT * ( near`, "cafe/d": "nothing",
		} {
			b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: path, Text: text}, 10_000))
		}
		b.noError(b.SaveMemory(b.ctx, "t", storage.Memory{Path: "x", Text: "café of another owner"}, 10_000))
		b.again()
		paths := func(query string, scopes ...string) string {
			var all []string
			for _, f := range ok(b.FindMemories(b.ctx, scopes, query, 10))(b) {
				all = append(all, f.Scope+":"+f.Path)
			}
			return strings.Join(all, " ")
		}
		b.equal("in the path first", strings.HasPrefix(paths("cafe", "s"), "s:cafe/d "), true)
		b.equal("beginnings and accents", len(strings.Fields(paths("CAFÉ", "s"))), 3)
		b.equal("all words", paths("uber cafe", "s"), "s:a")
		b.equal("two scopes", len(strings.Fields(paths("cafe", "s", "t"))), 4)
		b.equal("syntax is text", paths(`" AND ( NOT * near`, "s"), "s:c")
		b.equal("nothing to look for", paths(" *\" ", "s"), "")
		b.equal("no scope", paths("cafe"), "")
		b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: "changed"}, 10_000))
		b.equal("the index follows", paths("uber", "s"), "")
		b.noError(b.DropMemory(b.ctx, "s", "a", storage.MemoryChange{}))
		b.equal("and forgets", paths("changed", "s"), "")
	}},
	{"limits", func(b *bed) {
		b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: "12345"}, 10))
		b.is(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "b", Text: "123456"}, 10), storage.ErrTooMany)
		b.noError(b.SaveMemory(b.ctx, "s", storage.Memory{Path: "a", Text: "1234567890"}, 10))
		b.equal("nothing was saved", len(ok(b.Memories(b.ctx, "s"))(b)), 1)
		if err := b.SaveMemory(b.ctx, "s", storage.Memory{Text: "x"}, 10); err == nil {
			b.Fatal("a note without a path was saved")
		}
	}},
}

// addLine is a change that adds a line.
func addLine(line string) func(storage.Memory, bool) (string, bool, error) {
	return func(old storage.Memory, found bool) (string, bool, error) {
		if found != (old.Text != "") {
			return "", false, fmt.Errorf("found %v: %+v", found, old)
		}
		return old.Text + line + "\n", old.Tainted, nil
	}
}
