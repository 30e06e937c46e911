package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claybot/claybot/storage"
)

// SQLite has no page checksums, so a flipped bit in a row is read as if it had been
// written. Every page of claybot.db therefore ends in one:
//
//	0 ─────────────── 4088 ──── 4092 ── 4096
//	  what SQLite uses   "CBs1"    CRC-32C of the page's number and the bytes 0 to 4092
//
// SQLite does not use the last bytes of each page if the header of the file reserves
// them (byte 20). The VFS below is the system's, except for reads and writes of the main
// file: it sets the checksum of each page on writing and verifies it on reading. A page
// with a wrong checksum never reaches SQLite: the statement fails with SQLITE_IOERR_DATA,
// which classify maps to storage.ErrDamaged. SQLite itself adds checksums to the frames
// of the log.

const (
	// VFS is SQLite's name of the file system with checksums. Any other program that writes
	// to claybot.db must use it.
	VFS = "claybot"

	pageSize = 4096
	reserved = 8 // bytes at the end of a page
	sumAt    = pageSize - 4
	sumMark  = "CBs1"
	// lockPage contains the bytes that SQLite locks and is never written.
	lockPage = 0x40000000/pageSize + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pageSum returns the checksum of page number n.
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

// sealed reports whether the checksum of page n is correct.
func sealed(n uint32, page []byte) bool {
	return string(page[pageSize-reserved:sumAt]) == sumMark && binary.LittleEndian.Uint32(page[sumAt:]) == pageSum(n, page)
}

// blankFile returns a database without tables whose pages have checksums.
func blankFile() []byte {
	p := make([]byte, pageSize)
	copy(p, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(p[16:], pageSize)
	p[18], p[19] = 2, 2 // WAL mode
	p[20] = reserved
	p[21], p[22], p[23] = 64, 32, 32 // fixed by the format
	binary.BigEndian.PutUint32(p[24:], 1)
	binary.BigEndian.PutUint32(p[28:], 1) // pages
	binary.BigEndian.PutUint32(p[44:], 4) // format of the schema
	binary.BigEndian.PutUint32(p[56:], 1) // UTF-8
	binary.BigEndian.PutUint32(p[92:], 1)
	binary.BigEndian.PutUint32(p[96:], sqlite3.SQLITE_VERSION_NUMBER)
	p[100] = 0x0d // empty leaf
	binary.BigEndian.PutUint16(p[105:], pageSize-reserved)
	seal(1, p)
	return p
}

// summed reports whether the pages of the file at path have checksums. Two fields record
// it, and one is enough: damage of the other is found when the page is read.
func summed(path string) (bool, error) {
	f, err := describe(path)
	if err != nil {
		return false, err
	}
	defer f.leave()
	return f.summed()
}

func (d *descriptor) summed() (bool, error) {
	head := make([]byte, pageSize)
	n, err := d.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return n > 20 && head[20] == reserved || string(head[pageSize-reserved:sumAt]) == sumMark, nil
}

// The methods of SQLite's files, as C declares them.
type (
	openMethod = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	ioMethod   = func(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32
	// errnoMethod returns the error of a connection's last failed system call.
	errnoMethod = func(tls *libc.TLS, vfs uintptr, n int32, buf uintptr) int32
	// traitsMethod returns the guarantees of a file system.
	traitsMethod = func(tls *libc.TLS, file uintptr) int32
)

// summedMethods are the methods of a main file. SQLite expects its own struct first.
type summedMethods struct {
	sqlite3.Tsqlite3_io_methods
	read, write ioMethod // of the system
	traits      traitsMethod
}

// The VFS is created once and never freed: SQLite keeps pointers to it.
var (
	registered = sync.OnceValue(register)
	plainOpen  openMethod
	plainErrno errnoMethod
	lastErrno  atomic.Int32 // system error behind the last error of SQLite
	methodsMu  sync.Mutex
	methods    = map[uintptr]*summedMethods{} // by the address of the system's
)

// at returns a pointer to the C object at an address.
func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

// function returns the C function at an address.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// address returns the address of a function for C.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// register registers the VFS with SQLite.
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

// openSummed opens a file with the system's method and installs the checksum methods on
// a main file.
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
		m.FiVersion = min(m.FiVersion, 2) // no memory mapping, which would bypass the checksums
		methods[f.FpMethods] = m
	}
	f.FpMethods = uintptr(unsafe.Pointer(m))
	return rc
}

// keepErrno returns the system error and keeps it for classifyCode: SQLite has one code
// for all reasons why a file cannot be opened.
func keepErrno(tls *libc.TLS, vfs uintptr, n int32, buf uintptr) int32 {
	errno := plainErrno(tls, vfs, n, buf)
	lastErrno.Store(errno)
	return errno
}

// methodsOf returns the methods that openSummed installed on a file.
func methodsOf(file uintptr) *summedMethods {
	return at[summedMethods](at[sqlite3.Tsqlite3_file](file).FpMethods)
}

// readSummed reads a page and rejects a wrong checksum. The few header bytes that SQLite
// reads separately are read again with the first page.
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

// writeSummed writes a page with its checksum. Only this function uses the checksum
// bytes of SQLite's copy of the page.
func writeSummed(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	if n == pageSize && off%pageSize == 0 {
		seal(uint32(off/pageSize)+1, unsafe.Slice(at[byte](buf), pageSize))
	}
	return methodsOf(file).write(tls, file, buf, n, off)
}

// wholePages keeps SQLite from reading parts of pages without its cache: the checksum
// covers a whole page.
func wholePages(tls *libc.TLS, file uintptr) int32 {
	return methodsOf(file).traits(tls, file) &^ sqlite3.SQLITE_IOCAP_SUBPAGE_READ
}

// errPage reports a page with a wrong checksum.
var errPage = fmt.Errorf("%w: the checksum is wrong", storage.ErrDamaged)

func errSum(n uint32) error { return fmt.Errorf("page %d: %w", n, errPage) }
