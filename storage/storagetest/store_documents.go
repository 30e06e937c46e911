package storagetest

import (
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var documentTests = []storeTest{
	{"saved, read, listed, dropped", func(b *bed) {
		_, err := b.Document(b.ctx, "s", "a")
		b.is(err, storage.ErrNotFound)
		for path, text := range map[string]string{"b/c": "two", "a": "", "ü": "a\x00b", "a ": strings.Repeat("€", 1000)} {
			b.noError(b.SaveDocument(b.ctx, "s", path, text, 10_000))
			b.equal(path, ok(b.Document(b.ctx, "s", path))(b), text)
		}
		time.Sleep(time.Second)
		b.noError(b.SaveDocument(b.ctx, "s", "b/c", "three", 10_000))
		b.noError(b.SaveDocument(b.ctx, "other", "a", "x", 1))
		at := claybot.Now()
		b.again()
		b.equal("list", ok(b.Documents(b.ctx, "s"))(b), []storage.Document{
			{Path: "a", At: at - 1000}, {Path: "a ", Size: 3000, At: at - 1000}, {Path: "b/c", Size: 5, At: at}, {Path: "ü", Size: 3, At: at - 1000},
		})
		b.noError(b.DropDocuments(b.ctx, "s", "a"))
		b.noError(b.DropDocuments(b.ctx, "s", "a"))
		_, err = b.Document(b.ctx, "s", "a")
		b.is(err, storage.ErrNotFound)
		b.equal("one less", len(ok(b.Documents(b.ctx, "s"))(b)), 3)
		b.noError(b.DropDocuments(b.ctx, "s", ""))
		b.equal("none", len(ok(b.Documents(b.ctx, "s"))(b)), 0)
		b.equal("of another scope", ok(b.Document(b.ctx, "other", "a"))(b), "x")
		if err := b.SaveDocument(b.ctx, "s", "", "x", 9); err == nil {
			b.Fatal("a document without a path was saved")
		}
	}},
	{"limit", func(b *bed) {
		b.noError(b.SaveDocument(b.ctx, "s", "a", "12345", 10))
		b.noError(b.SaveDocument(b.ctx, "s", "b", "12345", 10))
		b.is(b.SaveDocument(b.ctx, "s", "c", "1", 10), storage.ErrTooMany)
		b.is(b.SaveDocument(b.ctx, "s", "a", "123456", 10), storage.ErrTooMany)
		b.equal("unchanged", ok(b.Document(b.ctx, "s", "a"))(b), "12345")
		b.noError(b.SaveDocument(b.ctx, "s", "a", "123", 10))
		b.noError(b.SaveDocument(b.ctx, "s", "c", "ü", 10)) // bytes, not letters
		b.is(b.SaveDocument(b.ctx, "s", "d", "x", 10), storage.ErrTooMany)
		b.noError(b.SaveDocument(b.ctx, "s", "d", "", 10))
		b.noError(b.SaveDocument(b.ctx, "t", "d", "1234567890", 10))
		b.is(b.SaveDocument(b.ctx, "u", "d", "1", 0), storage.ErrTooMany)
	}},
}
