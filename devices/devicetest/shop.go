// Package devicetest is a small web application to be explored, by tests and by
// demonstrations.
//
// Its pages are a shop for teapots: a form that sends an order, a page that leads
// nowhere, one whose server fails, a tour in a circle, and a page that tries what
// an explored page should not be able to do. Nothing in it is from elsewhere.
package devicetest

import (
	"fmt"
	"html"
	"net/http"
	"sync"
)

// A Shop is the application. It is safe for concurrent use. Its zero value is one
// that behaves.
type Shop struct {
	// Elsewhere is an address outside of the application, such as
	// "http://127.0.0.1:81". Where it is set, the page /elsewhere tries to reach it
	// in every way that a page has.
	Elsewhere string

	mu     sync.Mutex
	hits   map[string]int
	orders []string
}

// Orders are the names in the orders that were sent.
func (s *Shop) Orders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.orders...)
}

// Hits is how often a path was asked for.
func (s *Shop) Hits(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[path]
}

// ServeHTTP implements http.Handler.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.hits == nil {
		s.hits = make(map[string]int)
	}
	s.hits[r.URL.Path]++
	n := len(s.orders)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/":
		page(w, http.StatusOK, "Teapots", fmt.Sprintf(`<p>Welcome. %d orders so far, visit %d.</p>`, n, s.Hits("/"))+
			links("/catalogue", "Catalogue", "/order", "Order", "/tour/1", "Tour", "/imprint", "Imprint", "/news", "News")+s.away())
	case "/catalogue":
		page(w, http.StatusOK, "Catalogue", links("/", "Home", "/pot/7", "The blue pot")+
			`<label>Sort by <select name="sort"><option value="price">Price</option><option value="name">Name</option></select></label>`)
	case "/pot/7":
		page(w, http.StatusOK, "The blue pot", `<p>Holds a litre.</p>`+links("/", "Home", "/order", "Order it"))
	case "/order":
		s.order(w, r)
	case "/thanks":
		page(w, http.StatusOK, "Thank you", `<p>Your order is on its way.</p>`+links("/", "Home"))
	case "/imprint":
		page(w, http.StatusOK, "Imprint", `<p>No way leads on from here.</p>`)
	case "/news":
		page(w, http.StatusInternalServerError, "Something broke", `<p>Internal Server Error</p>`+links("/", "Home"))
	case "/tour/1", "/tour/2", "/tour/3":
		part := r.URL.Path[len("/tour/")] - '0'
		page(w, http.StatusOK, "Tour, part "+[]string{"one", "two", "three"}[part-1], links(fmt.Sprintf("/tour/%d", part%3+1), "Next part"))
	case "/elsewhere":
		s.elsewhere(w)
	case "/redirect":
		http.Redirect(w, r, s.Elsewhere+"/redirected", http.StatusFound)
	case "/download":
		w.Header().Set("Content-Disposition", `attachment; filename="pot.bin"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		fmt.Fprint(w, "bytes")
	default:
		page(w, http.StatusNotFound, "Not found", links("/", "Home"))
	}
}

// order shows the form, and takes it: who sends it is led on, as forms should.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	problem := ""
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		if name := r.PostFormValue("name"); name != "" && r.PostFormValue("email") != "" {
			s.mu.Lock()
			s.orders = append(s.orders, name)
			s.mu.Unlock()
			http.Redirect(w, r, "/thanks", http.StatusSeeOther)
			return
		}
		problem = `<p role="alert">Name and e-mail are missing.</p>`
	}
	page(w, http.StatusOK, "Order", problem+`<form method="post" action="/order">
<label>Name <input name="name"></label>
<label>E-mail <input name="email" type="email"></label>
<label><input type="checkbox" name="gift"> It is a gift</label>
<button>Send the order</button></form>`+links("/", "Home"))
}

// away is the link to the page that reaches elsewhere.
func (s *Shop) away() string {
	if s.Elsewhere == "" {
		return ""
	}
	return links("/elsewhere", "Elsewhere")
}

// elsewhere tries to leave the application, and to bother who explores it.
func (s *Shop) elsewhere(w http.ResponseWriter) {
	to := html.EscapeString(s.Elsewhere)
	page(w, http.StatusOK, "Elsewhere", links("/", "Home", s.Elsewhere+"/link", "A link away", "/redirect", "A redirect away",
		"/download", "A download", "file:///etc/passwd", "A file", "data:text/html,hi", "Data", "chrome://version", "The browser",
		"javascript:alert('hello')", "A dialog")+
		`<a href="`+to+`/popup" target="_blank">A popup away</a> <a href="/imprint" target="_blank">A popup here</a>
<button type="button" onclick="window.open('`+to+`/opened')">Open a window</button>
<button type="button" onclick="if (confirm('Really?')) location='`+to+`/confirmed'">Ask</button>
<img src="`+to+`/img" alt=""><iframe src="`+to+`/frame"></iframe><link rel="stylesheet" href="`+to+`/css">
<link rel="preconnect" href="`+to+`"><link rel="dns-prefetch" href="`+to+`"><link rel="prefetch" href="`+to+`/prefetch">
<script src="`+to+`/script"></script>
<script>
const away = "`+to+`"
fetch(away + "/fetch", {mode: "no-cors"}).catch(() => {})
navigator.sendBeacon(away + "/beacon", "x")
try { new WebSocket(away.replace("http", "ws") + "/socket") } catch {}
try { new EventSource(away + "/events") } catch {}
try { new Worker(URL.createObjectURL(new Blob(["fetch('" + away + "/worker', {mode: 'no-cors'})"]))) } catch {}
try { new RTCPeerConnection({iceServers: [{urls: "stun:" + new URL(away).host}]}).createDataChannel("x") } catch {}
const form = document.createElement("form"); form.action = away + "/form"; form.method = "post"; form.target = "hidden"
const hidden = document.createElement("iframe"); hidden.name = "hidden"; document.body.append(hidden, form); form.submit()
</script>`)
}

func page(w http.ResponseWriter, status int, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	title = html.EscapeString(title)
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s</title><link rel="icon" href="data:,">
<style>body{font:16px sans-serif;margin:2em}label,nav{display:block;margin:.5em 0}a{margin-right:1em}</style></head><body><h1>%s</h1>%s</body></html>`, title, title, body)
}

// links are links of pairs of an address and a text.
func links(pairs ...string) string {
	out := "<nav>"
	for i := 0; i+1 < len(pairs); i += 2 {
		out += fmt.Sprintf(`<a href="%s">%s</a> `, html.EscapeString(pairs[i]), html.EscapeString(pairs[i+1]))
	}
	return out + "</nav>"
}
