package connectors

import (
	"slices"
	"testing"
	"testing/synctest"
)

func TestLanesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(3)
		release := make(chan struct{})
		ran := make(chan int, 10)
		go func() {
			for i := range 4 {
				l.Do(t.Context(), "a", func() error { <-release; ran <- i; return nil })
			}
		}()
		synctest.Wait()
		if n := len(l.slots); n != 3 {
			t.Errorf("%d jobs inside, want 3", n)
		}
		close(release)
		synctest.Wait()
		l.Close()
		close(ran)
		var got []int
		for i := range ran {
			got = append(got, i)
		}
		if !slices.Equal(got, []int{0, 1, 2, 3}) || len(l.slots) != 0 || len(l.waiting) != 0 {
			t.Errorf("ran %v, %d slots and %d lanes left", got, len(l.slots), len(l.waiting))
		}
		l.Do(t.Context(), "a", func() error { t.Error("ran after close"); return nil })
	})
}
