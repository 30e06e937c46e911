package overview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A run that began days ago has its day in the sentence as it is said.
func TestWhyOldRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on Saturday, 1 January 2000
		time.Sleep(9 * 24 * time.Hour)
		began := claybot.At(time.Now().Add(-7 * 24 * time.Hour))
		r := storage.Receipt{
			Message: claybot.AgentMessage{ID: "m", At: began},
			Run:     &claybot.Run{ID: "r", State: claybot.RunRunning, Started: began},
		}
		for language, want := range map[texts.Language]string{
			texts.English: "Your message from Monday, 3 January at 0:00 UTC: I began with it on Monday, 3 January at 0:00 UTC. ",
			texts.German:  "Deine Nachricht von Montag, 3. Januar um 0:00 Uhr (UTC): Ich habe damit am Montag, 3. Januar um 0:00 Uhr (UTC) begonnen. ",
		} {
			if got := textWhy(texts.Voice{Language: language}, r, Free); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s\nwant %s", language, got, want)
			}
		}
	})
}
