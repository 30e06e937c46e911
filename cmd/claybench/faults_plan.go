package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
)

// A blueprint is what goes wrong in one life, apart from when.
type blueprint struct {
	class class
	call  kind
	mode  mode
	errno syscall.Errno
	most  int // the k-th call, at most
	// never says why this cannot happen under the load of the lab; empty when it can.
	never string
}

// row names the row of the table for lives of this kind.
func (b blueprint) row() string { return string(b.class) + " | " + b.how() }

func (b blueprint) how() string {
	if b.mode == modeError {
		return fmt.Sprintf("%s: %s", strings.TrimSpace(string(b.call)), errnoName(b.errno))
	}
	return "kill, " + string(b.mode)
}

func errnoName(e syscall.Errno) string {
	for name, x := range map[string]syscall.Errno{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "EACCES": syscall.EACCES,
		"EDQUOT": syscall.EDQUOT, "ENOMEM": syscall.ENOMEM,
	} {
		if x == e {
			return name
		}
	}
	return e.Error()
}

// blueprints are all ways in which the lab lets a call go wrong.
func blueprints() []blueprint {
	var all []blueprint
	deep := map[class]int{classDatabase: 400, classHistory: 60, classAgent: 20, classAttachment: 8, classCron: 20, classOther: 12}
	for _, c := range []class{classDatabase, classHistory, classAgent, classAttachment, classCron, classOther} {
		for _, m := range []mode{modeBefore, modeHalf, modeAfter} {
			all = append(all, blueprint{class: c, mode: m, most: deep[c]})
		}
		for _, e := range []struct {
			call  kind
			errno syscall.Errno
		}{
			{kindWrite, syscall.EIO},
			{kindWrite, syscall.ENOSPC},
			{kindWrite, syscall.EDQUOT},
			{kindSync, syscall.EIO},
			{kindMeta, syscall.EIO},
			{kindMeta, syscall.EACCES},
			{kindOpen, syscall.EMFILE},
			{kindOpen, syscall.EACCES},
			{kindOpen, syscall.ENOMEM},
			{kindRead, syscall.EIO},
		} {
			all = append(all, blueprint{class: c, call: e.call, mode: modeError, errno: e.errno, most: deep[c] / 2, never: impossible(c, e.call)})
		}
	}
	return all
}

// impossible is why the daemon makes no such call under the load of the lab; empty when
// it does.
func impossible(c class, k kind) string {
	if c == classCron && k == kindWrite {
		return "the rig writes the tasks, and the daemon only reads and moves them; it writes one when an agent creates it"
	}
	return ""
}

// sabotage chooses the moment: in a third of the lives an early call, which is one of
// the recovery of what the life before left behind. Each life of the row in which the
// call did not come halves the number of the call.
func (b blueprint) sabotage(rng *rand.Rand, misses int) sabotage {
	most := max(1, b.most>>misses)
	if rng.IntN(3) == 0 {
		most = min(most, 12)
	}
	return sabotage{
		Class: b.class, Call: b.call, Mode: b.mode, Errno: int(b.errno),
		K: 1 + rng.IntN(most), Times: []int{1, 3, 0}[rng.IntN(3)],
	}
}

// possible are the blueprints that can happen.
func possible() []blueprint {
	return slices.DeleteFunc(blueprints(), func(b blueprint) bool { return b.never != "" })
}
