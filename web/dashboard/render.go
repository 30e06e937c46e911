package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/web"
)

// A loader reads what a page or a fragment shows.
type loader func(r *http.Request) (any, error)

// A titled view names its page itself.
type titled interface{ Title() string }

// A viewer is who looks at a view; views embed it.
type viewer struct{ scope web.Scope }

func viewerOf(r *http.Request) viewer { return viewer{web.CallerOf(r).Scope} }

// Operates reports whether the viewer may act, Administers whether he may
// change settings and delete.
func (v viewer) Operates() bool    { return v.scope.Allows(web.Operate) }
func (v viewer) Administers() bool { return v.scope.Allows(web.Admin) }

// A frame is what the layout shows around a view.
type frame struct {
	viewer
	Page, Heading, Version string
	Nav                    string // the place that the page belongs to
	Query                  string // what the search box asks why of
	Places                 []place
	// Styles, Vendored and Scripts are files below assets.
	Styles, Vendored, Scripts []string

	Main template.HTML // made by a template of ours
}

// readViews parses the templates: for each page what all share and its own file;
// under the empty name what all share alone.
func readViews() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(functions).ParseFS(templates, "templates/shared/*.html"))
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	views := map[string]*template.Template{"": template.Must(base.Clone())}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		views[name] = template.Must(template.Must(base.Clone()).ParseFS(templates, file))
	}
	return views
}

// screen makes the route of a whole page.
func (b *pages) screen(pattern, page string, load loader) web.Route {
	return web.Route{Pattern: "GET " + pattern, Scope: web.Read, Page: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view, err := load(r)
		if err != nil {
			b.sorry(w, r, page, err)
			return
		}
		main, err := b.render(page, "main", view)
		if err != nil {
			web.Internal(w, b.log, "make the page "+page, err)
			return
		}
		b.framed(w, r, http.StatusOK, page, heading(page, view), main)
	})}
}

// part makes the route of a fragment. Who has it already is told so.
func (b *pages) part(pattern, page, fragment string, load loader) web.Route {
	return web.Route{Pattern: "GET " + pattern, Scope: web.Read, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view, err := load(r)
		if err != nil {
			b.fail(w, r, err)
			return
		}
		html, err := b.render(page, fragment, view)
		if err != nil {
			web.Internal(w, b.log, "make the part "+fragment, err)
			return
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(html)) // a hash never fails
		etag := `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		write(w, http.StatusOK, html)
	})}
}

// act makes the route of something that is done: do returns the words that the page
// shows for a moment, or why it was not done.
func (b *pages) act(pattern string, scope web.Scope, do func(r *http.Request) (string, error)) web.Route {
	return b.form(pattern, scope, func(w http.ResponseWriter, r *http.Request) error {
		words, err := do(r)
		if err == nil {
			b.done(w, words)
		}
		return err
	})
}

// form is act for what answers itself.
func (b *pages) form(pattern string, scope web.Scope, do func(w http.ResponseWriter, r *http.Request) error) web.Route {
	return web.Route{Pattern: pattern, Scope: scope, Raw: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			err = refused(http.StatusBadRequest, "That form could not be read.", "Send less.")
			b.fail(w, r, err)
			return
		}
		if err := do(w, r); err != nil {
			b.fail(w, r, err)
		}
	})}
}

// done answers an action: the page shows the words for a moment and fetches
// what changed.
func (b *pages) done(w http.ResponseWriter, words string) {
	note, _ := json.Marshal(map[string]string{"toast": words}) // strings always marshal
	var ascii strings.Builder
	for _, c := range string(note) { // a header is no place for other letters
		if c < 0x7F {
			ascii.WriteRune(c)
			continue
		}
		quoted := strconv.QuoteToASCII(string(c))
		if c > 0xFFFF {
			quoted = `"?"`
		}
		ascii.WriteString(quoted[1 : len(quoted)-1])
	}
	w.Header().Set("HX-Trigger", ascii.String())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// render executes a template of a page.
func (b *pages) render(page, name string, view any) (template.HTML, error) {
	var out bytes.Buffer
	err := b.views()[page].ExecuteTemplate(&out, name, view)
	return template.HTML(unturned(out.String())), err //nolint:gosec // escaped by html/template
}

// framed answers with a whole page.
func (b *pages) framed(w http.ResponseWriter, r *http.Request, status int, page, head string, main template.HTML) {
	f := frame{
		viewer: viewerOf(r), Page: page, Heading: head, Version: b.version, Places: places, Main: main,
		Query: r.URL.Query().Get("q"), Nav: cmp.Or(below[page], page),
	}
	if page != "why" {
		f.Query = ""
	}
	f.equip()
	html, err := b.render("", "layout", f)
	if err != nil {
		web.Internal(w, b.log, "make the frame", err)
		return
	}
	write(w, status, html)
}

// equip adds the files of the page: <page>.css and <page>.js where there are
// such, and those of others.
func (f *frame) equip() {
	for _, p := range f.Places {
		if p.Page != f.Page {
			continue
		}
		for _, file := range p.Vendored {
			if path.Ext(file) == ".css" {
				f.Styles = append(f.Styles, file)
			} else {
				f.Vendored = append(f.Vendored, file)
			}
		}
	}
	if _, err := fs.Stat(assets, "assets/"+f.Page+".css"); err == nil {
		f.Styles = append(f.Styles, f.Page+".css")
	}
	if _, err := fs.Stat(assets, "assets/"+f.Page+".js"); err == nil {
		f.Scripts = append(f.Scripts, f.Page+".js")
	}
}

func write(w http.ResponseWriter, status int, html template.HTML) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(html)) // a client that is gone needs no page
}

func heading(page string, view any) string {
	if t, ok := view.(titled); ok {
		return t.Title()
	}
	for _, p := range places {
		if p.Page == page {
			return p.Title
		}
	}
	return "claybot"
}

// refused makes the error of a request that cannot be followed.
func refused(status int, message, fix string) error {
	return &web.Problem{Status: status, Code: "refused", Message: message, Fix: fix}
}

// explain puts an error into words; nil for one that only the log is told.
func explain(err error) *web.Problem {
	if no, ok := errors.AsType[web.Refusal](err); ok {
		return &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: string(no)}
	}
	if answers, ok := errors.AsType[*questions.AnswerError](err); ok {
		return &web.Problem{Status: http.StatusBadRequest, Code: "answer", Message: strings.Join(slices.Sorted(maps.Values(answers.Faults)), " ")}
	}
	p := web.Explain(err)
	if p == nil && errors.Is(err, context.Canceled) {
		p = &web.Problem{Status: http.StatusServiceUnavailable, Code: "ending", Message: "claybot is stopping.", Fix: "Try again in a moment."}
	}
	return p
}

// fail answers a fragment or an action that went wrong; the page shows the
// words.
func (b *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := explain(err)
	if p == nil {
		web.Internal(w, b.log, r.Method+" "+r.URL.Path, err)
		return
	}
	web.Answer(w, p.Status, web.Failure{Error: *p})
}

// A problemView is a problem with the place to go on from.
type problemView struct {
	*web.Problem
	Out place
}

// wayOut is the list that a page belongs to, or the chats.
func wayOut(page string) place {
	for _, p := range places {
		if p.Page == below[page] {
			p.Title = "All " + strings.ToLower(p.Title)
			return p
		}
	}
	return place{Path: "/", Title: "To the chats"}
}

// missing answers for paths that are none: to a browser that opens one with a
// page, to a script in the one shape of errors.
func (b *pages) missing(w http.ResponseWriter, r *http.Request) {
	err := &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "There is no such page.", Fix: "Look whether the address is whole."}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") || r.Header.Get("HX-Request") != "" {
		b.fail(w, r, err)
		return
	}
	b.sorry(w, r, "missing", err)
}

// sorry answers with a page that says what is wrong.
func (b *pages) sorry(w http.ResponseWriter, r *http.Request, page string, err error) {
	p := explain(err)
	if p == nil {
		b.log.Error("request failed", "doing", "show "+page, "err", err)
		p = &web.Problem{Status: http.StatusInternalServerError, Code: "internal", Message: "That did not work; the log says why.", Fix: "Try again in a moment."}
	}
	main, err := b.render("", "problem", problemView{p, wayOut(page)})
	if err != nil {
		web.Internal(w, b.log, "make the page of an error", err)
		return
	}
	head := "That did not work"
	if p.Status == http.StatusNotFound {
		head = "Not found"
	}
	b.framed(w, r, p.Status, page, head, main)
}
