package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// newCage makes a program that runs another one with so many bytes of memory, in a
// control group of its own, which needs root. remove takes the group away again.
func newCage(dir, bin string, memory int64) (program string, remove func(), err error) {
	group, err := memoryGroup(memory)
	if err != nil {
		return "", nil, err
	}
	program = filepath.Join(dir, "caged")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %q && exec %q \"$@\"\n", filepath.Join(group, "cgroup.procs"), bin)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		return "", nil, err
	}
	return program, func() {
		for range 100 { // the group is busy until the kernel has buried its process
			if err := os.Remove(group); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}, nil
}

// memoryGroup makes a control group with a limit: version 2 where it has the
// controller, else version 1.
func memoryGroup(memory int64) (string, error) {
	name := "claybench-" + strconv.Itoa(os.Getpid())
	limit := []byte(strconv.FormatInt(memory, 10))
	const top = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(top, "cgroup.controllers")); err == nil {
		group := filepath.Join(top, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(group, "memory.max"), limit, 0o600); err != nil {
			_ = os.Remove(group)
			return "", err
		}
		_ = os.WriteFile(filepath.Join(group, "memory.swap.max"), []byte("0"), 0o600) // absent without swap
		return group, nil
	}
	group := filepath.Join(top, "memory", name)
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), limit, 0o600); err != nil {
		_ = os.Remove(group)
		return "", err
	}
	_ = os.WriteFile(filepath.Join(group, "memory.memsw.limit_in_bytes"), limit, 0o600) // absent without swap
	return group, nil
}
