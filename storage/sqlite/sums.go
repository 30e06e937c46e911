package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot/storage"
)

// SQLite keeps no checksum of a page, so a flipped bit in a row is read as if it had been
// written. Here every page of claybot.db ends in one:
//
//	0 ─────────────── 4088 ──── 4092 ── 4096
//	  what SQLite uses   "CBs1"    CRC-32C of the page's number and the bytes 0 to 4092
//
// SQLite leaves the last bytes of each page alone when the header of the file says so
// (byte 20). The VFS below is that of the machine, but for the reads and writes of the
// main file: it sets the checksum of each page that is written and looks at the one of
// each page that is read. A page whose checksum is wrong is never handed to SQLite: the
// statement fails with SQLITE_IOERR_DATA, which classify calls storage.ErrDamaged.
// Frames of the log have checksums of SQLite's own.

const (
	// VFS is the name under which SQLite knows the file system with checksums. A
	// program that writes to claybot.db beside this package must use it.
	VFS = "claybot"

	pageSize = 4096
	reserved = 8 // bytes at the end of a page
	sumAt    = pageSize - 4
	sumMark  = "CBs1"
	// lockPage has the bytes that SQLite locks and is never written.
	lockPage = 0x40000000/pageSize + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pageSum is the checksum of page number n.
func pageSum(n uint32, page []byte) uint32 {
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], n)
	return crc32.Update(crc32.Checksum(number[:], castagnoli), castagnoli, page[:sumAt])
}

// seal sets the checksum of page n.
func seal(n uint32, page []byte) {
	copy(page[pageSize-reserved:], sumMark)
	binary.LittleEndian.PutUint32(page[sumAt:], pageSum(n, page))
}

// sealed reports whether page n is as it was written.
func sealed(n uint32, page []byte) bool {
	return string(page[pageSize-reserved:sumAt]) == sumMark && binary.LittleEndian.Uint32(page[sumAt:]) == pageSum(n, page)
}

// blankFile is a database without tables whose pages have checksums.
func blankFile() []byte {
	p := make([]byte, pageSize)
	copy(p, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(p[16:], pageSize)
	p[18], p[19] = 2, 2 // it has a log
	p[20] = reserved
	p[21], p[22], p[23] = 64, 32, 32 // fixed by the format
	binary.BigEndian.PutUint32(p[24:], 1)
	binary.BigEndian.PutUint32(p[28:], 1) // pages
	binary.BigEndian.PutUint32(p[44:], 4) // format of the schema
	binary.BigEndian.PutUint32(p[56:], 1) // UTF-8
	binary.BigEndian.PutUint32(p[92:], 1)
	binary.BigEndian.PutUint32(p[96:], sqlite3.SQLITE_VERSION_NUMBER)
	p[100] = 0x0d // an empty leaf
	binary.BigEndian.PutUint16(p[105:], pageSize-reserved)
	seal(1, p)
	return p
}

// summed reports whether the pages of the file at path have checksums. Two places say
// so, and one of them is enough: damage of the other is found when the page is read.
func summed(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, pageSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return n > 20 && head[20] == reserved || string(head[pageSize-reserved:sumAt]) == sumMark, nil
}

// The methods of SQLite's own files, as C has them.
type (
	openMethod = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	ioMethod   = func(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32
	// errnoMethod is the error of the newest system call of a connection that failed.
	errnoMethod = func(tls *libc.TLS, vfs uintptr, n int32, buf uintptr) int32
	// traitsMethod says what a file system promises.
	traitsMethod = func(tls *libc.TLS, file uintptr) int32
)

// summedMethods are the methods of a main file. The first ones are where SQLite looks
// for them.
type summedMethods struct {
	sqlite3.Tsqlite3_io_methods
	read, write ioMethod // of the machine
	traits      traitsMethod
}

// The VFS is made once and stays: SQLite keeps what it points to.
var (
	registered = sync.OnceValue(register)
	plainOpen  openMethod
	plainErrno errnoMethod
	lastErrno  atomic.Int32 // the error of the system behind the newest error of SQLite
	methodsMu  sync.Mutex
	methods    = map[uintptr]*summedMethods{} // by those of the machine
)

// at is what C has at an address.
func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

// function is a method that C has the address of.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// address is that of a function, for C.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// register makes SQLite know the VFS.
func register() error {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := sqlite3.Xsqlite3_initialize(tls); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("start SQLite: code %d", rc)
	}
	plain := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if plain == 0 {
		return errors.New("SQLite has no file system")
	}
	name, err := libc.CString(VFS)
	if err != nil {
		return err
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	if own == 0 {
		return errors.New("no memory for the file system of SQLite")
	}
	v := at[sqlite3.Tsqlite3_vfs](own)
	*v = *at[sqlite3.Tsqlite3_vfs](plain)
	plainOpen = function[openMethod](v.FxOpen)
	plainErrno = function[errnoMethod](v.FxGetLastError)
	v.FzName, v.FpNext, v.FxOpen, v.FxGetLastError = name, 0, address(openSummed), address(keepErrno)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register the file system of SQLite: code %d", rc)
	}
	return nil
}

// openSummed opens a file as the machine does, and gives a main file methods that
// know of checksums.
func openSummed(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := plainOpen(tls, vfs, name, file, flags, outFlags)
	f := at[sqlite3.Tsqlite3_file](file)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_MAIN_DB == 0 || f.FpMethods == 0 {
		return rc
	}
	methodsMu.Lock()
	defer methodsMu.Unlock()
	m := methods[f.FpMethods]
	if m == nil {
		m = at[summedMethods](libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(summedMethods{}))))
		m.Tsqlite3_io_methods = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
		m.read, m.write = function[ioMethod](m.FxRead), function[ioMethod](m.FxWrite)
		m.traits = function[traitsMethod](m.FxDeviceCharacteristics)
		m.FxRead, m.FxWrite, m.FxDeviceCharacteristics = address(readSummed), address(writeSummed), address(wholePages)
		m.FiVersion = min(m.FiVersion, 2) // it does not map the file, which could not be checked
		methods[f.FpMethods] = m
	}
	f.FpMethods = uintptr(unsafe.Pointer(m))
	return rc
}

// keepErrno returns the error of the system as the machine does, and keeps it for
// classifyCode: SQLite has one code for all reasons why a file cannot be opened.
func keepErrno(tls *libc.TLS, vfs uintptr, n int32, buf uintptr) int32 {
	errno := plainErrno(tls, vfs, n, buf)
	lastErrno.Store(errno)
	return errno
}

// methodsOf are those that openSummed has given a file.
func methodsOf(file uintptr) *summedMethods {
	return at[summedMethods](at[sqlite3.Tsqlite3_file](file).FpMethods)
}

// readSummed reads a page and refuses one whose checksum is wrong. The few bytes of
// the header that SQLite reads by themselves are read again with the first page.
func readSummed(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	rc := methodsOf(file).read(tls, file, buf, n, off)
	switch {
	case n < 512, rc != sqlite3.SQLITE_OK && rc != sqlite3.SQLITE_IOERR_SHORT_READ:
		return rc
	case rc != sqlite3.SQLITE_OK, n != pageSize, off%pageSize != 0, !sealed(uint32(off/pageSize)+1, unsafe.Slice(at[byte](buf), pageSize)):
		return sqlite3.SQLITE_IOERR_DATA
	}
	return rc
}

// writeSummed writes a page with its checksum. The bytes of the checksum in SQLite's
// copy of the page are nobody else's.
func writeSummed(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	if n == pageSize && off%pageSize == 0 {
		seal(uint32(off/pageSize)+1, unsafe.Slice(at[byte](buf), pageSize))
	}
	return methodsOf(file).write(tls, file, buf, n, off)
}

// wholePages keeps SQLite from reading parts of pages past its cache: the checksum is
// that of a whole page.
func wholePages(tls *libc.TLS, file uintptr) int32 {
	return methodsOf(file).traits(tls, file) &^ sqlite3.SQLITE_IOCAP_SUBPAGE_READ
}

// errPage is in errors of pages whose checksum is wrong.
var errPage = fmt.Errorf("%w: the checksum is wrong", storage.ErrDamaged)

func errSum(n uint32) error { return fmt.Errorf("page %d: %w", n, errPage) }
