package texts

import (
	"strings"
	"testing"
)

// The mark of a repeated message is in the language of its reader and leaves a caption, of at
// most 1,024 characters, the 960 that are promised.
func TestResent(t *testing.T) {
	for _, l := range All() {
		mark := Voice{Language: l}.Resent()
		if english := (Voice{}).Resent(); l != English && mark == english || !strings.HasSuffix(mark, ")\n\n") {
			t.Errorf("%s: %q", l, mark)
		}
		if room := ResentRoom(); len([]rune(mark)) > room || room > 1024-960 {
			t.Errorf("%s: %q has %d characters; the room is %d", l, mark, len([]rune(mark)), room)
		}
	}
}
