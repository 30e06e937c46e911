//go:build unix

package main

import (
	"syscall"

	"github.com/claybot/claybot/overview"
)

// diskOf tells how much space the file system of a directory has.
func diskOf(dir string) (overview.DiskStatus, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return overview.DiskStatus{}, err
	}
	block := int64(st.Bsize) //nolint:unconvert // its type differs between systems
	return overview.DiskStatus{Free: int64(st.Bavail) * block, Total: int64(st.Blocks) * block}, nil
}
