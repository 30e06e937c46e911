package tools

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// revealed is the inside of s as a JSON string, one unit for each character: the
// character itself where people see what it is, else an escape. Of three
// backticks in a row the third is escaped, so that no code block ends, and of a long gap all
// spaces but the first ones.
func revealed(s string) []string {
	runes := []rune(s)
	hide := disguised(runes)
	units := make([]string, len(runes))
	ticks, blanks := 0, 0
	for i, r := range runes {
		if blanks++; r != ' ' {
			blanks = 0
		}
		if r == '`' {
			ticks++
		} else {
			ticks = 0
		}
		switch {
		case r == '"' || r == '\\':
			units[i] = `\` + string(r)
		case r == '\n':
			units[i] = `\n`
		case r == '\t':
			units[i] = `\t`
		case r == '\r':
			units[i] = `\r`
		case ticks == 3:
			units[i], ticks = escaped(r), 0
		case hide[i], blanks > maxBlanks:
			units[i] = escaped(r)
		default:
			units[i] = string(r)
		}
	}
	return units
}

// The longest gaps that are written as they are: more would push out of sight what comes
// after them.
const (
	maxBlanks = 8
	maxBreaks = 3
)

// plainly is a text as it is, with its line ends, in which nothing is hidden: a character
// that people cannot see, or take for another one, is its number, as ⟨U+202E⟩, and a long
// gap its length, as ⟨500 spaces⟩. No code block ends in it. Texts that differ are written
// differently.
func plainly(s string) string {
	runes := []rune(s)
	hide := disguised(runes)
	var b strings.Builder
	for i := 0; i < len(runes); {
		r, n := runes[i], 1
		for i+n < len(runes) && runes[i+n] == r {
			n++
		}
		end := i+n == len(runes) || runes[i+n] == '\n'
		switch {
		case r == ' ' && (n > maxBlanks || end):
			fmt.Fprintf(&b, "⟨%d spaces⟩", n)
		case r == '\n' && n > maxBreaks:
			fmt.Fprintf(&b, "⟨%d line ends⟩", n)
		case r == '\n':
			b.WriteString(strings.Repeat("\n", n))
		case r == '`' && n >= 3:
			b.WriteString(strings.Repeat("⟨U+0060⟩", n))
		default:
			for k := range n {
				if hide[i+k] {
					fmt.Fprintf(&b, "⟨U+%04X⟩", r)
				} else {
					b.WriteRune(r)
				}
			}
		}
		i += n
	}
	return b.String()
}

func escaped(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// maxMarks is how many marks may stand on one letter: more cover what is around.
const maxMarks = 2

// disguised tells of each character whether people may take it for another one,
// or not see it.
func disguised(runes []rune) []bool {
	hide := make([]bool, len(runes))
	for begin := 0; begin < len(runes); {
		end := begin + 1
		if wordly(runes[begin]) {
			for end < len(runes) && wordly(runes[end]) {
				end++
			}
			mixed := mixture(runes[begin:end])
			for i := begin; i < end; i++ {
				hide[i] = !ascii(runes[i]) && (mixed || !plainLetter(runes[i]))
			}
		} else {
			hide[begin] = !ascii(runes[begin]) && !plainSign(runes[begin])
		}
		begin = end
	}
	heap := 0
	for i, r := range runes {
		if heap++; !unicode.IsMark(r) {
			heap = 0
		}
		hide[i] = hide[i] || heap > maxMarks
	}
	if confusing(runes, hide) {
		for i, r := range runes {
			hide[i] = hide[i] || rightToLeft(r)
		}
	}
	return hide
}

func ascii(r rune) bool { return r >= ' ' && r <= '~' }

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// The scripts whose words are shown as they are. Those that are written with
// each other are one.
var scripts = []struct {
	name   string
	tables []*unicode.RangeTable
	// alike are the letters that look like those of Latin words.
	alike string
}{
	{"latin", []*unicode.RangeTable{unicode.Latin}, ""},
	{"cyrillic", []*unicode.RangeTable{unicode.Cyrillic}, "асԁеһіјӏорԛѕԝхуүґгпткАВСЕНІЈКМОРЅТХУԜԚӀЗбЬ"},
	{"greek", []*unicode.RangeTable{unicode.Greek}, "αινορυτκχωγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳϜ"},
	{"armenian", []*unicode.RangeTable{unicode.Armenian}, "աոսօհցքյգզՍՏՕԼԱ"},
	{"georgian", []*unicode.RangeTable{unicode.Georgian}, "ი"},
	{"east", []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo}, "一ノ丶丨口〇ロエ工イト卜ㅡㅣㅇ"},
	{"arabic", []*unicode.RangeTable{unicode.Arabic}, "اهه٥"},
	{"hebrew", []*unicode.RangeTable{unicode.Hebrew}, "וןסטחם"},
	{"devanagari", []*unicode.RangeTable{unicode.Devanagari}, ""},
	{"bengali", []*unicode.RangeTable{unicode.Bengali}, ""},
	{"tamil", []*unicode.RangeTable{unicode.Tamil}, ""},
	{"telugu", []*unicode.RangeTable{unicode.Telugu}, "ంఠం"},
	{"thai", []*unicode.RangeTable{unicode.Thai}, "เแ"},
	{"ethiopic", []*unicode.RangeTable{unicode.Ethiopic}, "ዐሀሆ"},
}

func scriptOf(r rune) int {
	for i, s := range scripts {
		if unicode.In(r, s.tables...) {
			return i
		}
	}
	return -1
}

// mixture reports whether a word may be read as another one: it has letters of
// several scripts, or only such as look like Latin ones.
func mixture(word []rune) bool {
	first, alike := -1, true
	for _, r := range word {
		s := scriptOf(r)
		if s < 0 || !unicode.IsLetter(r) {
			alike = false
			continue
		}
		if first >= 0 && s != first {
			return true
		}
		first = s
		alike = alike && strings.ContainsRune(scripts[s].alike, r)
	}
	return first > 0 && alike
}

// plainLetter reports letters and marks of the known scripts in their usual
// form. What is left: invisible fillers, marks that change any letter, compatible
// and other odd forms.
func plainLetter(r rune) bool {
	switch {
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return false
	case r >= 0xf900 && r <= 0xffff, r >= 0x1100 && r <= 0x11ff, r >= 0x2e80 && r <= 0x2fdf, r > 0xffff && !unicode.Is(unicode.Han, r):
		return false
	case unicode.Is(unicode.Latin, r):
		return plainLatin(r)
	case r == 0x3005, r == 0x3006, r == 0x30fc: // of Japanese words
		return true
	}
	return scriptOf(r) >= 0
}

// plainLatin reports the letters of living languages, without those that look
// like others or like signs.
func plainLatin(r rune) bool {
	switch r {
	case 'ı', 'ĸ', 'ſ', 'ǀ', 'ǁ', 'ǂ', 'ǃ', 'ƨ', 'ƽ', 'ƿ', 'ƚ', 'ª', 'º':
		return false
	}
	return r >= 0xc0 && r <= 0x24f || r >= 0x1e00 && r <= 0x1ef9
}

// plainSign reports signs that no reader takes for those of ASCII.
func plainSign(r rune) bool {
	switch {
	case strings.ContainsRune("¡¢£¤¥§©«®°±²³µ¶¹»¼½¾¿×÷€₹₽₺₴₿™、。「」『』", r):
		return true
	case r >= 0x2600 && r <= 0x26ff, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff,
		r >= 0x1f900 && r <= 0x1f9ff, r >= 0x1fa70 && r <= 0x1faff:
		return unicode.Is(unicode.So, r)
	}
	return false
}

func rightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// confusing reports whether letters that run from right to left stand beside
// others: readers see such a line in another order than it has.
func confusing(runes []rune, hide []bool) bool {
	right, other := false, false
	for i, r := range runes {
		switch {
		case hide[i]:
			other = true
		case rightToLeft(r):
			right = true
		case !strings.ContainsRune(" .,!?\n", r):
			other = true
		}
	}
	return right && other
}
