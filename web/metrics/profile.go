package metrics

import (
	"net/http"
	"net/http/pprof"

	"github.com/claybot/claybot/web"
)

// pprofRoutes are the routes of net/http/pprof, for admins: a profile shows what is
// in memory. They work with go tool pprof.
func pprofRoutes() []web.Route {
	var routes []web.Route
	for path, h := range map[string]http.HandlerFunc{
		"":        pprof.Index, // and all profiles with a name of their own
		"profile": pprof.Profile,
		"trace":   pprof.Trace,
		"symbol":  pprof.Symbol,
		"cmdline": pprof.Cmdline,
	} {
		routes = append(routes, web.Route{Pattern: "GET /debug/pprof/" + path, Scope: web.Admin, Handler: fresh(h)})
	}
	return routes
}

// fresh keeps a profile out of caches.
func fresh(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}
