package storage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
)

func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := storage.NewRecent[string, int](10, time.Minute)
		size := func(what string, n int, cost int64) {
			t.Helper()
			synctest.Wait()
			if gotN, gotCost := c.Size(); gotN != n || gotCost != cost {
				t.Errorf("%s: %d values that cost %d, want %d that cost %d", what, gotN, gotCost, n, cost)
			}
		}
		take := func(key string, want int, known bool) {
			t.Helper()
			if v, ok := c.Take(key); ok != known || v != want {
				t.Errorf("take %s: %d, %v", key, v, ok)
			}
		}
		take("a", 0, false)
		c.Put("a", 1, 4)
		c.Put("a", 2, 5) // instead
		size("one", 1, 5)
		take("a", 2, true)
		take("a", 0, false)
		size("none", 0, 0)

		c.Put("a", 1, 4)
		c.Put("b", 2, 4)
		c.Put("a", 1, 4) // in use again
		c.Put("c", 3, 4)
		size("all that fit", 2, 8)
		take("b", 0, false)
		c.Put("large", 4, 11)
		size("what is larger than all drops all", 0, 0)

		c.Put("a", 1, 4)
		c.Put("b", 2, 4)
		c.Shrink(8, 2)
		size("shrunk to what there is", 2, 8)
		c.Shrink(7, 2)
		take("a", 0, false)
		take("b", 2, true)
		c.Put("b", 2, 4)
		c.Put("a", 1, 4)
		c.Shrink(8, 1)
		take("b", 0, false)
		size("shrunk to the last", 1, 4)
		take("a", 1, true)
		c.Put("a", 1, 4)
		c.Shrink(0, 1)
		size("shrunk to nothing", 0, 0)

		c.Put("a", 1, 1)
		time.Sleep(40 * time.Second)
		c.Put("b", 1, 1)
		time.Sleep(19 * time.Second)
		size("not idle for long", 2, 2)
		time.Sleep(time.Second)
		size("a minute", 1, 1)
		take("b", 1, true)
		c.Put("b", 1, 1)
		time.Sleep(59 * time.Second)
		size("in use since", 1, 1)
		time.Sleep(time.Second)
		size("nothing is left", 0, 0)
		time.Sleep(time.Hour)
		c.Put("a", 1, 1)
		time.Sleep(time.Minute)
		size("again", 0, 0)
	})
}
