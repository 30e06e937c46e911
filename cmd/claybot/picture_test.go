package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A look is how a picture of a transcript shows the messages of a platform.
type look struct {
	title                           string
	back, band, ink, faint, link    string // colours
	button, border                  string // of buttons
	mine, theirs                    string // bubbles of people and of the bot; empty for no bubbles
	avatars                         bool
	bold, italic                    string // the marks of the platform's formatting
	inButton, onBand, codeBack, rim string
}

var looks = map[string]look{
	"slack": {
		title: "Slack", back: "#ffffff", band: "#4a154b", ink: "#1d1c1d", faint: "#616061", link: "#1264a3", button: "#ffffff", border: "#8d8d8d",
		avatars: true, bold: "*", italic: "_", inButton: "#1d1c1d", onBand: "#ffffff", codeBack: "#f4f4f4", rim: "#dddddd",
	},
	"telegram": {
		title: "Telegram", back: "#dfe9ef", band: "#517da2", ink: "#000000", faint: "#5a6b78", link: "#2481cc", button: "#ffffff", border: "#8aa7bd",
		mine: "#effdde", theirs: "#ffffff", bold: "**", italic: "__", inButton: "#2481cc", onBand: "#ffffff", codeBack: "#f4f4f4", rim: "#b9c9d4",
	},
	"discord": {
		title: "Discord", back: "#313338", band: "#1e1f22", ink: "#dbdee1", faint: "#949ba4", link: "#00a8fc", button: "#4e5058", border: "#4e5058",
		avatars: true, bold: "**", italic: "*", inButton: "#ffffff", onBand: "#f2f3f5", codeBack: "#2b2d31", rim: "#1e1f22",
	},
}

// The measures of a picture, in pixels.
const (
	pictureWidth = 720
	fontSize     = 15
	lineHeight   = 21
	margin       = 16
	indent       = 46 // of texts beside an avatar
)

// A drawing is a picture of a transcript as SVG. Everything in it follows from the transcript, so
// the same transcript is the same picture.
type drawing struct {
	look
	b     strings.Builder
	y     int
	place string
}

// draw returns the picture of a transcript.
func draw(platform string, all []turn) string {
	d := &drawing{look: looks[platform]}
	for _, t := range all {
		if t.place != d.place {
			d.header(t.place)
		}
		switch {
		case t.said:
			d.message(t.who, t.text, nil, d.mine, true)
		case t.bot:
			text, buttons := t.buttons()
			d.message(t.who, text, buttons, d.theirs, false)
		default:
			d.event(t.text)
		}
	}
	d.y += margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Helvetica, Arial, sans-serif" font-size="%d">`+"\n",
		pictureWidth, d.y, fontSize) + fmt.Sprintf(`<rect width="100%%" height="100%%" fill="%s" rx="8"/>`+"\n", d.back) + d.b.String() + "</svg>\n"
}

func (d *drawing) box(x, y, w, h int, fill, stroke string) {
	fmt.Fprintf(&d.b, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="%s" stroke="%s"/>`+"\n", x, y, w, h, fill, stroke)
}

func (d *drawing) text(x, y int, fill, more, text string) {
	fmt.Fprintf(&d.b, `<text x="%d" y="%d" fill="%s"%s>%s</text>`+"\n", x, y, fill, more, html.EscapeString(text))
}

// header draws in which conversation the following is.
func (d *drawing) header(place string) {
	if d.place != "" {
		d.y += margin
	}
	d.place = place
	fmt.Fprintf(&d.b, `<rect x="0" y="%d" width="%d" height="34" fill="%s"/>`+"\n", d.y, pictureWidth, d.band)
	d.text(margin, d.y+22, d.onBand, ` font-weight="bold"`, d.title+" · "+place)
	d.y += 34
}

// event draws what a person does without a message.
func (d *drawing) event(text string) {
	d.y += 10
	for _, line := range fold(formatted(text, look{}), pictureWidth-2*margin) {
		d.y += lineHeight
		d.text(pictureWidth/2, d.y-6, d.faint, ` font-style="italic" text-anchor="middle"`, plainText(line))
	}
}

// message draws a message, with a bubble where the platform has them.
func (d *drawing) message(who, text string, buttons []string, bubble string, right bool) {
	d.y += 12
	left, width := margin, pictureWidth-2*margin
	if d.avatars {
		left, width = margin+indent, width-indent
		colour := map[string]string{"claybot": "#b5651d", "Ann": "#2e7d62", "Bob": "#5b5fc7"}[who]
		fmt.Fprintf(&d.b, `<circle cx="%d" cy="%d" r="17" fill="%s"/>`+"\n", margin+17, d.y+19, colour)
		d.text(margin+17, d.y+24, "#ffffff", ` font-weight="bold" text-anchor="middle"`, strings.ToUpper(who[:1]))
	}
	paragraphs := d.paragraphs(text, min(width, 560))
	height := len(paragraphs)*lineHeight + lineHeight
	if bubble != "" {
		widest := measure([]word{{text: who}})
		for _, p := range paragraphs {
			widest = max(widest, measure(p.words))
		}
		if right {
			left = pictureWidth - margin - widest - 24
		}
		d.box(left, d.y, widest+24, height+10, bubble, d.rim)
		left += 12
	}
	name := d.ink
	if bubble != "" {
		name = d.link
	}
	d.text(left, d.y+19, name, ` font-weight="bold"`, who)
	if who == "claybot" && d.avatars {
		d.box(left+measure([]word{{text: who, bold: true}})+8, d.y+7, 34, 15, d.codeBack, d.rim)
		d.text(left+measure([]word{{text: who, bold: true}})+25, d.y+18, d.faint, ` font-size="10" text-anchor="middle"`, "APP")
	}
	d.y += lineHeight
	for _, p := range paragraphs {
		d.line(left, p, width)
	}
	d.y += 10
	d.buttons(left, buttons)
}

// A paragraph is a line of a message.
type paragraph struct {
	words []word
	code  bool
}

func (d *drawing) paragraphs(text string, width int) (all []paragraph) {
	code := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "```":
			code = !code
		case code:
			all = append(all, paragraph{[]word{{text: line, mono: true}}, true})
		default:
			for _, l := range fold(formatted(line, d.look), width) {
				all = append(all, paragraph{l, false})
			}
		}
	}
	return all
}

func (d *drawing) line(left int, p paragraph, width int) {
	if p.code {
		fmt.Fprintf(&d.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", left, d.y+3, min(width, 560), lineHeight, d.codeBack)
	}
	d.y += lineHeight
	fmt.Fprintf(&d.b, `<text x="%d" y="%d" fill="%s" xml:space="preserve">`, left, d.y-3, d.ink)
	for i, w := range p.words {
		text := html.EscapeString(w.text)
		if i > 0 {
			text = " " + text
		}
		switch {
		case w.mono:
			text = `<tspan font-family="monospace" font-size="13">` + text + `</tspan>`
		case w.bold:
			text = `<tspan font-weight="bold">` + text + `</tspan>`
		case w.italic:
			text = `<tspan font-style="italic">` + text + `</tspan>`
		}
		d.b.WriteString(text)
	}
	d.b.WriteString("</text>\n")
}

func (d *drawing) buttons(left int, labels []string) {
	x := left
	for i, label := range labels {
		w := measure([]word{{text: label}}) + 24
		if x+w > pictureWidth-margin {
			x = left
			d.y += 38
		}
		d.box(x, d.y, w, 30, d.button, d.border)
		d.text(x+w/2, d.y+20, d.inButton, ` text-anchor="middle"`, label)
		x += w + 8
		if i == len(labels)-1 {
			d.y += 34
		}
	}
}

// A word is a piece of text between blanks.
type word struct {
	text               string
	bold, italic, mono bool
}

// formatted splits a line and reads the marks of its formatting.
func formatted(line string, l look) (all []word) {
	var now word
	for field := range strings.FieldsSeq(line) {
		w := now
		for _, mark := range []struct {
			text string
			on   *bool
		}{{l.bold, &now.bold}, {l.italic, &now.italic}, {"`", &now.mono}} {
			if mark.text == "" {
				continue
			}
			if rest, ok := strings.CutPrefix(field, mark.text); ok {
				field, *mark.on = rest, true
				w = now
			}
			for _, end := range []string{"", ".", ",", ":"} {
				if rest, ok := strings.CutSuffix(field, mark.text+end); ok && *mark.on {
					field, *mark.on = rest+end, false
				}
			}
		}
		w.text = field
		all = append(all, w)
	}
	return all
}

// fold divides words into lines of a width.
func fold(all []word, width int) (lines [][]word) {
	var line []word
	for _, w := range all {
		if len(line) > 0 && measure(append(slices.Clone(line), w)) > width {
			lines = append(lines, line)
			line = nil
		}
		line = append(line, w)
	}
	return append(lines, line)
}

// measure is about how wide a line is, in pixels: rather more than it is in most fonts.
func measure(line []word) int {
	total := 0.0
	for i, w := range line {
		if i > 0 {
			total += 0.32
		}
		for _, r := range w.text {
			size := 0.63
			switch {
			case w.mono:
				size = 0.53
			case strings.ContainsRune("ijlftr.,:;'|!()[]/", r):
				size = 0.38
			case strings.ContainsRune("mwMW@%…▾", r):
				size = 0.98
			case unicode.IsUpper(r):
				size = 0.76
			}
			if w.bold {
				size *= 1.07
			}
			total += size
		}
	}
	return int(total * fontSize)
}

func plainText(line []word) string {
	var all []string
	for _, w := range line {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

// TestDraw draws what people and the bot write as what it is.
func TestDraw(t *testing.T) {
	all := readTranscript("slack", "  0.04s  --                       scene\n"+
		"  0.05s  slack panel >            Ann opens it\n"+
		"  0.06s  slack panel < bot        *Hi* a<b\n"+strings.Repeat(" ", 34)+" [Go] [Stop]\n"+
		"  0.07s  slack panel >            Ann: yes\n")
	if len(all) != 3 || all[0].said || !all[2].said || all[2].text != "yes" {
		t.Fatalf("the transcript is %+v", all)
	}
	got := draw("slack", all)
	if !utf8.ValidString(got) {
		t.Error("the picture is not UTF-8")
	}
	for _, want := range []string{">Ann opens it</text>", `<tspan font-weight="bold">Hi</tspan> a&lt;b</text>`, ">Go</text>", ">Stop</text>", ">yes</text>", ">Slack · panel</text>"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("the picture does not show %q once:\n%s", want, got)
		}
	}
}
