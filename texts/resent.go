package texts

import "unicode/utf8"

// resent precedes a message whose first copy may have arrived.
const resent = "(sent again: the first copy may have arrived)"

// Resent is what precedes a message whose first copy may have arrived.
func (v Voice) Resent() string { return v.In(resent) + "\n\n" }

// ResentRoom is how many characters Resent has at most, in any language.
func ResentRoom() int {
	room := 0
	for _, l := range All() {
		room = max(room, utf8.RuneCountInString(Voice{Language: l}.Resent()))
	}
	return room
}
