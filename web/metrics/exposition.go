package metrics

import (
	"bytes"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// The content types of the two formats.
const (
	typeText        = "text/plain; version=0.0.4; charset=utf-8"
	typeOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// A page is one scrape in the text format of Prometheus, or in OpenMetrics.
type page struct {
	bytes.Buffer
	open bool // OpenMetrics
}

// wantsOpenMetrics reports whether the Accept header of a request prefers
// OpenMetrics. What cannot be read, and what prefers neither, gets the text
// format, which everything understands.
func wantsOpenMetrics(h http.Header) bool {
	best, text := 0.0, 0.0
	for entry := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(entry)
		if err != nil {
			continue
		}
		q := 1.0
		if v, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(v, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		version := params["version"]
		switch media {
		case "application/openmetrics-text":
			if version == "" || version == "1.0.0" || version == "0.0.1" {
				best = max(best, q)
			}
		case "text/plain":
			text = max(text, q)
		}
	}
	return best > 0 && best >= text
}

// family writes all values of f.
func (p *page) family(f *family, s *snapshot) {
	name := f.name
	if p.open {
		name = f.base()
	}
	p.WriteString("# HELP " + name + " ")
	p.WriteString(helpEscaper(p.open).Replace(f.help))
	p.WriteString("\n# TYPE " + name + " " + string(f.kind) + "\n")
	if unit := f.unit(); p.open && unit != "" {
		p.WriteString("# UNIT " + name + " " + unit + "\n")
	}
	if f.read != nil {
		f.read(s, func(v float64, values ...string) { p.sample(f.name, f.labels, values, v) })
		return
	}
	for _, s := range f.snapshots() {
		if f.kind == histogram {
			p.histogram(f, s)
			continue
		}
		p.sample(f.name, f.labels, s.values, s.n)
	}
}

func (p *page) histogram(f *family, s series) {
	labels := append(f.labels[:len(f.labels):len(f.labels)], "le")
	values := append(s.values[:len(s.values):len(s.values)], "")
	sum := uint64(0)
	for i, bound := range f.bounds {
		sum += s.buckets[i]
		values[len(values)-1] = p.bound(bound)
		p.sample(f.name+"_bucket", labels, values, float64(sum))
		p.example(s, i)
	}
	values[len(values)-1] = "+Inf"
	p.sample(f.name+"_bucket", labels, values, float64(s.count))
	p.example(s, len(f.bounds))
	p.sample(f.name+"_sum", f.labels, s.values, s.n)
	p.sample(f.name+"_count", f.labels, s.values, float64(s.count))
}

// bound is a bound as the value of le: OpenMetrics wants it to look like a
// number with a fraction.
func (p *page) bound(v float64) string {
	s := number(v)
	if p.open && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func helpEscaper(open bool) *strings.Replacer {
	if open {
		return labelEscaper
	}
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`)
}

// sample writes one line.
func (p *page) sample(name string, labels, values []string, v float64) {
	p.WriteString(name)
	for i, label := range labels {
		if i == 0 {
			p.WriteByte('{')
		} else {
			p.WriteByte(',')
		}
		p.WriteString(label + `="`)
		p.WriteString(labelEscaper.Replace(strings.ToValidUTF8(values[i], "\uFFFD")))
		p.WriteByte('"')
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteString(" " + number(v) + "\n")
}

// example adds the exemplar of a bucket to its line, which only OpenMetrics has.
func (p *page) example(s series, bucket int) {
	if !p.open || bucket >= len(s.examples) || s.examples[bucket].trace == "" {
		return
	}
	e := s.examples[bucket]
	p.Truncate(p.Len() - 1) // the end of the line
	at := strconv.FormatFloat(float64(e.at.UnixMilli())/1000, 'f', 3, 64)
	p.WriteString(` # {trace_id="` + e.trace + `"} ` + number(e.value) + " " + at + "\n")
}

// number is a number as both formats have it.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// serve answers a scrape.
func (m *Metrics) serve(w http.ResponseWriter, r *http.Request) { m.render(r).send(w) }

// render makes the page that a request is for.
func (m *Metrics) render(r *http.Request) *page {
	p := &page{open: wantsOpenMetrics(r.Header)}
	s := m.snapshot(r.Context())
	for _, f := range m.all {
		p.family(f, s)
	}
	return p
}

func (p *page) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeText)
	if p.open {
		p.WriteString("# EOF\n")
		w.Header().Set("Content-Type", typeOpenMetrics)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept")
	_, _ = p.WriteTo(w) // a scraper that is gone needs no answer
}
