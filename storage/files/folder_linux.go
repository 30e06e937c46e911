package files

import (
	"io/fs"
	"syscall"
	"time"
)

// folderOf returns what identifies a folder of the file system, and when it was changed last.
func folderOf(info fs.FileInfo) (id uint64, changed time.Time, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, time.Time{}, false
	}
	return st.Ino, time.Unix(st.Ctim.Unix()), true
}
