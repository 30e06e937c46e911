package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
)

func TestLockMakesDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er", ".claybot")
	l, err := Lock(dir + "/")
	if err != nil {
		t.Fatal(err)
	}
	if got := mode(t, dir); got != 0o700 {
		t.Errorf("directory: got mode %o, want 700", got)
	}
	if got := mode(t, dir+"/claybot.lock"); got != 0o600 {
		t.Errorf("lock file: got mode %o, want 600", got)
	}
	if got, want := readFile(t, dir+"/claybot.lock"), strconv.Itoa(os.Getpid())+"\n"; got != want {
		t.Errorf("lock file: got %q, want %q", got, want)
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := Lock(dir)
		if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
			t.Errorf("second lock: got %v, want %v by this process", err, storage.ErrLocked)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after close: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestLockDiesWithProcess takes the lock in another process and kills it.
func TestLockDiesWithProcess(t *testing.T) {
	if dir := os.Getenv("CLAYBOT_TEST_LOCK"); dir != "" {
		l, err := Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		fmt.Println("held")
		_, err = io.Copy(io.Discard, os.Stdin) // until killed
		t.Fatal("not killed", err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockDiesWithProcess$")
	cmd.Env = append(os.Environ(), "CLAYBOT_TEST_LOCK="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	_, err = Lock(dir)
	if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), "process "+strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("got %v, want %v by process %d", err, storage.ErrLocked, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the killed child ended without an error")
	}
	l, err := Lock(dir)
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnmade: who may not create the directory reads what to do.
func TestUnmade(t *testing.T) {
	for _, tt := range []struct {
		err  error
		next bool
	}{
		{&fs.PathError{Op: "mkdir", Path: "/srv/bot", Err: syscall.EACCES}, true},
		{&fs.PathError{Op: "mkdir", Path: "/srv/bot", Err: syscall.EROFS}, true},
		{&fs.PathError{Op: "mkdir", Path: "/srv/bot", Err: syscall.ENOTDIR}, false},
	} {
		got := unmade("/srv/bot", tt.err)
		if next := strings.HasSuffix(got.Error(), "; let this user write to /srv, or set another directory with CLAYBOT_DATA_DIR"); next != tt.next || !errors.Is(got, tt.err) {
			t.Errorf("%v: got %v, with a next step: %v", tt.err, got, next)
		}
	}
}

func TestLockRefuses(t *testing.T) {
	base := t.TempDir()
	real := filepath.Join(base, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	writeFile(t, file, nil)
	shared := func(name string, m os.FileMode) string {
		p := filepath.Join(base, name)
		if err := errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, m)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tt := range []struct{ dir, want string }{
		{link, "chmod 700 " + real},
		{link + "/", "chmod 700 " + real},
		{shared("group", 0o720), "chmod 700 " + base + "/group"},
		{shared("others", 0o702), "chmod 700 " + base + "/others"},
		{file, "is a file"},
	} {
		l, err := Lock(tt.dir)
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, storage.ErrLocked) {
			t.Errorf("%s: got %v, want an error with %q", tt.dir, err, tt.want)
		}
	}
	l, err := Lock(shared("readable", 0o755))
	if err != nil {
		t.Fatalf("a directory that others may read: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func mode(t *testing.T, name string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// A lock that its holder has let go may be a child's for a moment, which was about to
// be started: it is waited for.
func TestLockWaitsForWhoLetsGo(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(first.f.Fd())) // as the child has it
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := Lock(dir)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	if err := syscall.Close(fd); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// The same where the holder was killed: its pid stands in the file, and names a process
// that has ended.
func TestLockWaitsForAChildOfTheKilled(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(first.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "claybot.lock"), []byte(strconv.Itoa(gone.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error)
		go func() {
			second, err := Lock(dir)
			if err == nil {
				err = second.Close()
			}
			got <- err
		}()
		synctest.Wait() // it has tried once
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// A claybot.lock that was removed lets no second process in (R7); an earlier version,
// which knows that file alone, is kept out as long as it is there.
func TestLockOfTheDirectory(t *testing.T) {
	dir := t.TempDir() + "/data"
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	older, err := os.OpenFile(dir+"/claybot.lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = older.Close() }()
	if err := flock(older, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("an earlier version gets in: %v", err)
	}
	if err := os.Remove(dir + "/claybot.lock"); err != nil {
		t.Fatal(err)
	}
	if _, holder, err := Look(dir); err != nil || holder == "" {
		t.Errorf("looks free: %q %v", holder, err)
	}
	second, err := Lock(dir)
	if err == nil {
		_ = second.Close()
	}
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("a second process gets in: %v", err)
	}
	if _, err := os.Stat(dir + "/claybot.lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second process leaves a claybot.lock that an earlier version would take: %v", err)
	}
	if _, noProc := os.Stat("/proc/locks"); noProc == nil && !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("%v does not name this process", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := Lock(dir)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// The holder takes claybot.lock again after it was removed or replaced, so an earlier
// version, which knows that file alone, does not get in.
func TestLockIsRenewed(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"untouched": func(string) error { return nil },
		"removed":   os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".x", nil, 0o600), os.Rename(path+".x", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			l, err := Lock(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(filepath.Join(dir, lockName)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := l.Renew(); err != nil {
					t.Fatal(err)
				}
			}
			older, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = older.Close() }()
			if err := flock(older, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) {
				t.Errorf("an earlier version gets in: %v", err)
			}
			if got, want := holderOf(older), fmt.Sprint("process ", os.Getpid()); got != want {
				t.Errorf("held by %q, want %q", got, want)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := flock(older, syscall.LOCK_EX); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// A holder whose new claybot.lock another process has says so, and takes it later.
func TestLockIsRenewedLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	name := filepath.Join(dir, lockName)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	other, err := os.Create(name)
	if err == nil {
		err = flock(other, syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("while another process has it: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// A start waits for a process that only looks whether the directory is in use, which
// shares the lock for a moment.
func TestLockBesideALook(t *testing.T) {
	dir := t.TempDir()
	look, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := flock(look, syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if got := holderOfDir(look); got != unnamed {
		t.Errorf("a look is taken for the holder: %s", got)
	}
	time.AfterFunc(letGo/50, func() { _ = look.Close() })
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
