package connectors

// SplitFitting is Split for a platform whose formatting can make a text longer, as it does with
// tables, or that bounds the formatting itself: each part is the longest of which fits is true.
// Where the last part would be much shorter than the one before, both share what is left. A part
// of fewer than eight units is not asked for.
func SplitFitting(text string, limit int, length func(string) int, fits func(string) bool) []string {
	if length(text) <= limit && fits(text) {
		return []string{text}
	}
	s := splitter{text: text, limit: limit, length: length, fits: fits}
	var parts []string
	for _, p := range s.pieces() {
		parts = append(parts, s.part(p))
	}
	return parts
}

// leastPart is the limit below which parts are not made smaller to fit.
const leastPart = 8

func (s splitter) part(p piece) string { return p.open + s.text[p.from:p.to] + p.close }

// shows reports whether p fits once it is formatted.
func (s splitter) shows(p piece) bool { return s.fits == nil || s.fits(s.part(p)) }

// fill returns the piece that begins with p, with what is cut from the text after it, filled as
// well as possible.
func (s splitter) fill(p piece, in fence) (piece, cut) {
	most := s.limit - s.length(p.open)
	full, c := s.upTo(p, in, most)
	if s.fits == nil {
		return full, c
	}
	if !s.fits(s.part(full)) {
		full, c = s.largest(p, in, most)
	}
	rest := s.text[c.next:]
	used, left := s.length(s.text[p.from:c.to]), s.length(rest)
	if left == 0 || left >= used/4 || c.fence.mark != "" {
		return full, c
	}
	even, d := s.upTo(p, in, (used+left)*3/5)
	last := piece{open: d.spans, from: d.next, to: len(s.text)}
	if d.to <= p.from || d.fence.mark != "" || !s.shows(even) || s.length(s.part(last)) > s.limit || !s.shows(last) {
		return full, c
	}
	return even, d
}

// upTo returns the piece that begins with p and has at most budget of the text.
func (s splitter) upTo(p piece, in fence, budget int) (piece, cut) {
	c := s.cut(p.from, in, budget)
	p.to, p.close = c.to, ""
	switch {
	case c.fence.mark != "":
		p.close = closing(s.text[p.from:p.to], c.fence)
	case budget >= leastSpans:
		if c.spans, p.close = s.spans(c); s.length(p.open)+budget+s.length(p.close) > s.limit && p.close != "" {
			c = s.cut(p.from, in, budget-spansRoom)
			p.to = c.to
			if c.fence.mark == "" {
				c.spans, p.close = s.spans(c)
			} else {
				p.close = closing(s.text[p.from:p.to], c.fence)
			}
		}
	}
	return p, c
}

// largest returns the largest piece below most that fits once it is formatted, or a small one if
// none fits.
func (s splitter) largest(p piece, in fence, most int) (piece, cut) {
	low := min(leastPart, most)
	best, c := s.upTo(p, in, low)
	for high := most; high-low > 1; {
		mid := (low + high) / 2
		if q, d := s.upTo(p, in, mid); d.to > p.from && s.fits(s.part(q)) {
			best, c, low = q, d, mid
		} else {
			high = mid
		}
	}
	return best, c
}
