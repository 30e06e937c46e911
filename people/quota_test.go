package people_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// TestRoom: only a file that exceeds the quota is reported as one that does; a limit of the
// store or of the call is another error. What is stored takes from the room.
func TestRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		room   people.Room
		inline int64 // the limit of the store
		size   int
		want   error
		left   int64
	}{
		"fits":                     {people.Room{Left: 6, Limit: 9}, 100, 6, nil, 0},
		"exceeds the quota":        {people.Room{Left: 6, Limit: 9}, 100, 7, storage.ErrQuota, 6},
		"exceeds the store":        {people.Room{Left: 60, Limit: 90}, 5, 7, storage.ErrTooMany, 60},
		"exceeds the call":         {people.Room{Left: 60, Limit: 90}, 100, 21, storage.ErrTooMany, 60},
		"no quota":                 {people.Room{}, 100, 20, nil, -20},
		"no quota, and too large":  {people.Room{}, 100, 21, storage.ErrTooMany, 0},
		"nothing is left":          {people.Room{Limit: 9}, 100, 1, storage.ErrQuota, 0},
		"exceeds both, quota less": {people.Room{Left: 4, Limit: 9}, 5, 7, storage.ErrQuota, 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.room.Save(strings.NewReader(strings.Repeat("x", tc.size)), 20, func(content io.Reader, limit int64) (f claybot.FileReference, err error) {
				limit = min(limit, tc.inline)
				if f.Size, err = io.Copy(io.Discard, io.LimitReader(content, limit+1)); f.Size > limit {
					err = storage.ErrTooMany
				}
				return f, err
			})
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil || tc.room.Left != tc.left {
				t.Errorf("got %v and %d, want %v and %d", err, tc.room.Left, tc.want, tc.left)
			}
		})
	}
}
