package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// idleEnv makes the test binary a daemon that is ready and does nothing.
const idleEnv = "CLAYBENCH_IDLE"

// asIdle does not return in a process that is such a daemon.
func asIdle() {
	if os.Getenv(idleEnv) != "" {
		fmt.Fprintln(os.Stderr, `{"msg":"ready"}`)
		select {}
	}
}

// People write on Discord once it knows the bot, also if that takes longer than all kills: a message from
// before is none that Discord would hand over.
func TestNothingIsSaidToAnUnknownBot(t *testing.T) {
	t.Parallel()
	places, err := openPlaces(0)
	if err != nil {
		t.Fatal(err)
	}
	defer places.close()
	if err := places.openDiscord(chatsEach); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	table, err := newTimetable(t.Context(), dir, taskFolder{dir})
	if err != nil {
		t.Fatal(err)
	}
	rig := &crashRig{dir: dir, chats: places.chats, table: table}
	stopLoad := rig.load(t.Context())
	pause(t.Context(), 2*sayEvery) // each would have said something
	ended := make(chan error, 1)
	go func() { ended <- stopLoad() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the load does not end without a bot")
	}
	for _, c := range places.chats {
		if n := len(c.said); n > 0 {
			t.Errorf("%s: %d messages were said, want 0", c.name, n)
		}
	}
}

// The first kill, and no other one, waits until the platforms keep what people write.
func TestKillsAwaitPlatforms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no session")
	for _, answer := range []error{nil, refused} {
		rig := &crashRig{
			options: options{crash: 2, bin: self}, dir: t.TempDir(), env: []string{idleEnv + "=1"},
			actor: newActor(0, 0, 0), rng: rand.New(rand.NewPCG(testSeed, 1)),
		}
		moments := &rig.actor.moments
		moments.note(working, time.Now(), time.Hour)
		meetings := 0
		rig.meet = func(context.Context) error {
			meetings++
			if rig.hush.TryRLock() {
				t.Error("people say something meanwhile")
			}
			if n := moments.kills[working]; n > 0 {
				t.Errorf("%d kills came before", n)
			}
			return answer
		}
		if err := rig.kills(t.Context()); !errors.Is(err, answer) {
			t.Errorf("got %v, want %v", err, answer)
		}
		if meetings != 1 {
			t.Errorf("%d meetings, want 1", meetings)
		}
	}
}
