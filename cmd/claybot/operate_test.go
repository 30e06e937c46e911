package main

import (
	"slices"
	"testing"

	"github.com/claybot/claybot/overview"
)

// The status shows the disk when little space is left on it, and says so plainly
// when hardly any is.
func TestDiskRows(t *testing.T) {
	const total = 100 << 30
	for _, tt := range []struct {
		disk *overview.DiskStatus
		want []string
	}{
		{nil, nil},
		{&overview.DiskStatus{Free: 50 << 30, Total: total}, nil},
		{&overview.DiskStatus{Free: 500 << 20, Total: total}, []string{"disk", "low: 500 MiB of 100.0 GiB free"}},
		{&overview.DiskStatus{Free: 3 << 20, Total: total}, []string{"disk", "FULL: 3 MiB of 100.0 GiB free: claybot will soon be unable to store messages"}},
		{&overview.DiskStatus{Total: total}, []string{"disk", "FULL: 0 KiB of 100.0 GiB free: claybot cannot store messages"}},
	} {
		var got []string
		if rows := diskRows(overview.Status{OutsideStatus: overview.OutsideStatus{Disk: tt.disk}}); len(rows) > 0 {
			got = rows[0]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.disk, got, tt.want)
		}
	}
}
