package files

import (
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Starts count as unclean until a process ends in order, whatever became of the file.
func TestBoots(t *testing.T) {
	dir := t.TempDir()
	begin := func(unclean int) *Boots {
		t.Helper()
		b, err := OpenBoots(dir)
		if err != nil {
			t.Fatal(err)
		}
		now, err := ReadBoot(dir)
		if err != nil || now.Unclean != unclean || now.Started == 0 || now.Closed {
			t.Errorf("the record is %+v, %v; want %d unclean starts", now, err, unclean)
		}
		return b
	}
	begin(0)
	b := begin(1)
	want := []claybot.AgentID{"a", "b"}
	for _, sync := range []bool{false, true} {
		if err := b.Update(sync, func(x *storage.Boot) { x.Testing = want }); err != nil {
			t.Fatal(err)
		}
	}
	mark := storage.StoreMark{ID: "store", N: 7, At: claybot.Now(), Log: true}
	if err := MarkStore(dir, mark); err != nil {
		t.Fatal(err)
	}
	b = begin(2)
	if got := b.Last().Testing; !reflect.DeepEqual(got, want) {
		t.Errorf("on probation were %v, want %v", got, want)
	}
	for range 2 { // an operator forced the end: that is no crash, and no clean shutdown
		if err := b.Forced(); err != nil {
			t.Fatal(err)
		}
		b = begin(2)
	}
	begin(3)
	b = begin(4)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Forced(); err != nil { // too late: it has shut down
		t.Fatal(err)
	}
	if b = begin(0); b.Store() != mark {
		t.Errorf("the mark of the database is %+v, want %+v", b.Store(), mark)
	}
	if err := os.WriteFile(filepath.Join(dir, bootsName), []byte(`{"uncl`), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBoots(dir)
	if err == nil || b.Last().Started != 0 {
		t.Errorf("a torn record: %+v, %v; want an error and no record", b.Last(), err)
	}
	begin(1)
}

// A noSpace is a disk on which nothing fits.
type noSpace struct{ osFS }

func (noSpace) Open(name string, flag int) (File, error) {
	if flag&os.O_CREATE != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return osFS{}.Open(name, flag)
}

// A full disk takes a record all the same, and the next process reads when it became full.
func TestBootsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenBoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Update(true, func(x *storage.Boot) { x.Testing = []claybot.AgentID{"a", "b", "c"} }); err != nil {
		t.Fatal(err)
	}
	b.fs = noSpace{}
	for _, filled := range []claybot.Time{1, 1_795_000_000_000} { // shorter and longer than the record before
		if err := b.Update(true, func(x *storage.Boot) { x.Testing, x.Filled = nil, filled }); err != nil {
			t.Error(err)
		}
		if got, err := ReadBoot(dir); err != nil || got.Filled != filled || len(got.Testing) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for range 2 {
		next, err := OpenBoots(dir)
		if err != nil || next.Last().Filled != 1_795_000_000_000 {
			t.Errorf("%+v, %v", next.Last(), err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A fewBytes is a disk on which files do not grow beyond a size.
type fewBytes struct {
	noSpace
	most int
}

func (d fewBytes) Open(name string, flag int) (File, error) {
	f, err := d.noSpace.Open(name, flag)
	return fewFile{f, d.most}, err
}

type fewFile struct {
	File
	most int
}

func (f fewFile) Write(data []byte) (int, error) {
	n, err := f.File.Write(data[:min(len(data), f.most)])
	if err == nil && n < len(data) {
		err = syscall.ENOSPC
	}
	return n, err
}

// A record that does not fit on a full disk leaves the one before, whole.
func TestBootsBeyondTheLastBlock(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenBoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, bootsName))
	if err != nil {
		t.Fatal(err)
	}
	b.fs = fewBytes{most: len(before) + 20}
	many := make([]claybot.AgentID, 50)
	if err := b.Update(true, func(x *storage.Boot) { x.Testing = many }); err == nil {
		t.Error("a record was written that does not fit")
	}
	if after, err := os.ReadFile(filepath.Join(dir, bootsName)); err != nil || string(after) != string(before) {
		t.Errorf("the record before is now %q, %v", after, err)
	}
	if err := b.Update(true, func(x *storage.Boot) { x.Testing, x.Full = nil, true }); err != nil {
		t.Error(err)
	}
	if got, err := ReadBoot(dir); err != nil || !got.Full {
		t.Errorf("the next one that fits: %+v, %v", got, err)
	}
}

// Without a place to write, a Boots still says what was before.
func TestBootsCannotWrite(t *testing.T) {
	b, err := OpenBoots(filepath.Join(t.TempDir(), "missing"))
	if err == nil || b == nil {
		t.Fatalf("got %v, %v; want a record and an error", b, err)
	}
	if err := b.Update(false, func(*storage.Boot) {}); err == nil {
		t.Error("a write to a missing directory succeeded")
	}
}
