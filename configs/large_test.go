package configs

import (
	"strings"
	"testing"
)

// A text that is too large for a file is refused before it is written.
func TestLargeText(t *testing.T) {
	text := []byte("# " + strings.Repeat("x", maxFile-3) + "\n")
	if _, _, err := LoadText(FileName, text, environ(nil)); err != nil {
		t.Errorf("the largest text: %v", err)
	}
	if _, _, err := LoadText(FileName, append(text, '\n'), environ(nil)); err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("a larger text: %v", err)
	}
}
