//go:build !linux

package files

import (
	"io/fs"
	"time"
)

// folderOf cannot tell it.
func folderOf(fs.FileInfo) (id uint64, changed time.Time, ok bool) { return 0, time.Time{}, false }
