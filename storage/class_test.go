package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestClassOf(t *testing.T) {
	tests := []struct {
		err  error
		want Class
	}{
		{nil, ClassNone},
		{context.Canceled, ClassNone},
		{ErrLeaseLost, ClassNone},
		{ErrFull, ClassStore},
		{fmt.Errorf("post: %w", ErrBusy), ClassStore},
		{context.DeadlineExceeded, ClassStore},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ClassStore},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, ClassStore},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, ClassMember},
		{&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.ENOTDIR}, ClassAgent},
		{&fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}, ClassMember},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, ClassAgent},
		{&fs.PathError{Op: "read", Path: "x", Err: syscall.EISDIR}, ClassAgent},
		{ErrDamaged, ClassAgent},
		{errors.New("UNIQUE constraint failed: agents.key"), ClassAgent},
		{fmt.Errorf("x: %w", &Fault{Class: ClassStore, Err: ErrDamaged}), ClassStore},
	}
	for _, test := range tests {
		if got := ClassOf(test.err); got != test.want {
			t.Errorf("ClassOf(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}
