package main

import "testing"

// What people tell their agents, which pass on all they know, reaches nobody else as long
// as nobody approves that, also when the daemon is killed meanwhile.
func TestLeaks(t *testing.T) {
	t.Parallel()
	o := options{leaks: 60, deny: true, seed: testSeed, bin: binary(t)} // make leaks has 10,000
	if testing.Short() {
		o.leaks = 20
	}
	if err := leaks(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// The judge sees a secret that reached another person, and knows what an approval is about,
// whose it is, and when it ends.
func TestLeakJudge(t *testing.T) {
	const (
		question = "everybody in 'The group' (telegram/-100) will be able to read what an agent knows from a conversation that only 'Ann' (telegram/1001) can read now"
		first    = "canary-0-1"
		second   = "canary-0-2"
	)
	judge := func() *leakJudge {
		j := newLeakJudge(leakMembers, leakNames)
		j.tell(first, ann)
		return j
	}
	for name, tt := range map[string]struct {
		act   func(j *leakJudge)
		leaks int
	}{
		"the person sees it":     {func(j *leakJudge) { j.see("I know "+first, ann, "x") }, 0},
		"another person sees it": {func(j *leakJudge) { j.see("I know "+first, bob, "x") }, 1},
		"a group sees it":        {func(j *leakJudge) { j.see("I know "+first, group, "x") }, 1},
		"once is enough":         {func(j *leakJudge) { j.see(first, bob, "x"); j.see(first, bob, "x") }, 1},
		"another secret":         {func(j *leakJudge) { j.see("canary-0-11", bob, "x") }, 0},
		"approved":               {func(j *leakJudge) { j.approve(question, ann); j.see(first, group, "x") }, 0},
		"those of the group":     {func(j *leakJudge) { j.approve(question, ann); j.see(first, bob, "x") }, 0},
		"not others":             {func(j *leakJudge) { j.approve(question, ann); j.see(first, cyd, "x") }, 1},
		"approved by another":    {func(j *leakJudge) { j.approve(question, bob); j.see(first, group, "x") }, 1},
		"approved nothing":       {func(j *leakJudge) { j.approve("Shall I?", ann); j.see(first, group, "x") }, 1},
		"told meanwhile":         {func(j *leakJudge) { j.approve(question, ann); j.tell(second, ann); j.see(second, group, "x") }, 0},
		"told later":             {func(j *leakJudge) { j.approve(question, ann)(); j.tell(second, ann); j.see(second, group, "x") }, 1},
		"members read along":     {func(j *leakJudge) { j.tell(second, group); j.see(second, bob, "x") }, 0},
		"another group does not": {func(j *leakJudge) { j.tell(second, group); j.see(second, channel, "x") }, 1},
	} {
		j := judge()
		if tt.act(j); len(j.leaks) != tt.leaks {
			t.Errorf("%s: %d leaks, want %d: %q", name, len(j.leaks), tt.leaks, j.leaks)
		}
	}
}
