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
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A loader reads what a page or a fragment shows.
type loader func(r *http.Request) (any, error)

// A titled view has a title of its own.
type titled interface{ Title() string }

// A viewer is the scope of the user of a view; views embed it.
type viewer struct{ scope web.Scope }

func viewerOf(r *http.Request) viewer { return viewer{web.CallerOf(r).Scope} }

// Operates reports whether the user may act, Approves whether the user may approve
// actions, Administers whether the user may
// change settings and delete.
func (v viewer) Operates() bool    { return v.scope.Allows(web.Operate) }
func (v viewer) Approves() bool    { return v.scope.Allows(web.Approve) }
func (v viewer) Administers() bool { return v.scope.Allows(web.Admin) }

// places are the pages that the user may see.
func (v viewer) places() []place {
	return slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.Page == "config" && !v.Administers() })
}

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

// part makes the route of a fragment, with an ETag.
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
		etag := `"` + domID(string(html)) + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		write(w, http.StatusOK, html)
	})}
}

// act makes the route of an action: do returns the text of a toast, or an error.
func (b *pages) act(pattern string, scope web.Scope, do func(r *http.Request) (string, error)) web.Route {
	return b.form(pattern, scope, func(w http.ResponseWriter, r *http.Request) error {
		words, err := do(r)
		if err == nil {
			b.done(w, words)
		}
		return err
	})
}

// form is act for an action that writes its answer itself.
func (b *pages) form(pattern string, scope web.Scope, do func(w http.ResponseWriter, r *http.Request) error) web.Route {
	return web.Route{Pattern: pattern, Scope: scope, Raw: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			b.fail(w, r, errForm)
			return
		}
		if err := do(w, r); err != nil {
			b.fail(w, r, err)
		}
	})}
}

// done answers an action: the page shows a toast and fetches what changed.
func (b *pages) done(w http.ResponseWriter, words string) {
	note, _ := json.Marshal(map[string]string{"toast": words}) // strings always marshal
	var ascii strings.Builder
	for _, c := range string(note) { // headers are ASCII
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
		viewer: viewerOf(r), Page: page, Heading: head, Version: b.version, Places: viewerOf(r).places(), Main: main,
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
	if f.Page == "usage" {
		f.Styles, f.Vendored = append(f.Styles, "vendor/uPlot.min.css"), append(f.Vendored, "vendor/uPlot.iife.min.js")
	}
	if f.Page == "run" || f.Page == "flow" || f.Page == "flow-edit" {
		f.Styles = append(f.Styles, "graph.css")
	}
	for ext, files := range map[string]*[]string{".css": &f.Styles, ".js": &f.Scripts} {
		if _, err := fs.Stat(assets, "assets/"+f.Page+ext); err == nil {
			*files = append(*files, f.Page+ext)
		}
	}
}

func write(w http.ResponseWriter, status int, html template.HTML) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(html)) // the client may be gone
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

func problem(status int, code, message, fix string) error {
	return &web.Problem{Status: status, Code: code, Message: message, Fix: fix}
}

func refused(status int, message, fix string) error { return problem(status, "refused", message, fix) }

func bad(message, fix string) error { return refused(http.StatusBadRequest, message, fix) }

func gone(message, fix string) error {
	return problem(http.StatusNotFound, "not_found", message, fix)
}

// explain describes an error for the user; nil for one that only belongs in the
// log.
func explain(err error) *web.Problem {
	if no, ok := errors.AsType[web.Refusal](err); ok {
		return &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: string(no)}
	}
	if answers, ok := errors.AsType[*questions.AnswerError](err); ok {
		return &web.Problem{Status: http.StatusBadRequest, Code: "answer", Message: strings.Join(slices.Sorted(maps.Values(answers.Faults)), " ")}
	}
	p := web.Explain(err)
	if p == nil && errors.Is(err, context.Canceled) {
		return explain(errStopping)
	}
	return p
}

// fail answers a fragment or an action that failed.
func (b *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := explain(err)
	if p == nil {
		web.Internal(w, b.log, r.Method+" "+r.URL.Path, err)
		return
	}
	web.Answer(w, p.Status, web.Failure{Error: *p})
}

// A problemView is a problem with a page to continue from.
type problemView struct {
	*web.Problem
	Out place
}

// wayOut returns the list that a page belongs to, or the chats.
func wayOut(page string) place {
	for _, p := range places {
		if p.Page == below[page] {
			p.Title = "All " + strings.ToLower(p.Title)
			if p.Page == "nodes" {
				p.Title = "Go to the map"
			}
			return p
		}
	}
	return place{Path: "/", Title: "Go to Chats"}
}

// missing handles unknown paths: a browser gets a page, a script a JSON error.
func (b *pages) missing(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") || r.Header.Get("HX-Request") != "" {
		b.fail(w, r, errPage)
		return
	}
	b.sorry(w, r, "missing", errPage)
}

// sorry answers with a page that describes an error.
func (b *pages) sorry(w http.ResponseWriter, r *http.Request, page string, err error) {
	p := explain(err)
	if p == nil {
		b.log.Error("request failed", "doing", "show "+page, "err", err)
		p = explain(errInternal)
	}
	main, err := b.render("", "problem", problemView{p, wayOut(page)})
	if err != nil {
		web.Internal(w, b.log, "make the page of an error", err)
		return
	}
	head := "Request failed"
	if p.Status == http.StatusNotFound {
		head = "Not found"
	}
	b.framed(w, r, p.Status, page, head, main)
}

// screenful is one screen of the rows of a list, with the addresses of the same rows
// and of those after them, empty at the end. The addresses keep the filters that the
// request has.
func screenful[T any](r *http.Request, page string, rows []T, size int, cursor string, id func(T) string, filters ...string) (shown []T, fresh, next string) {
	q := url.Values{}
	for _, key := range filters {
		if v := r.URL.Query().Get(key); v != "" {
			q.Set(key, v)
		}
	}
	fresh = "/ui/" + page + "/rows?" + q.Encode()
	rows, more := cut(rows, size)
	if more > 0 {
		q.Set(cursor, id(rows[size-1]))
		next = "/ui/" + page + "/more?" + q.Encode()
	}
	return rows, fresh, next
}

// cut returns at most n elements of a list, and how many it omits.
func cut[T any](all []T, n int) ([]T, int) {
	if len(all) <= n {
		return all, 0
	}
	return all[:n], len(all) - n
}

// domID derives a DOM id from an arbitrary name.
func domID(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // a hash never fails
	return hex.EncodeToString(sum.Sum(nil))
}

// ignoreGone returns err unless it is storage.ErrNotFound.
func ignoreGone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
