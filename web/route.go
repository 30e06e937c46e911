package web

import (
	"context"
	"net/http"

	"github.com/claybot/claybot"
)

// A Scope is the permission of a caller. It is stored with the credential on
// the server.
type Scope string

// The scopes, each of which includes those before it. Anyone needs no login. Chat is apart
// from them: it allows only the routes that are marked for it, and there only the caller's
// own conversations.
const (
	Anyone  Scope = ""
	Chat    Scope = "chat"
	Read    Scope = "read"    // see
	Operate Scope = "operate" // talk to agents, stop, retry, answer what is no approval
	Approve Scope = "approve" // approve and deny actions
	Admin   Scope = "admin"   // who may come in, settings, deletion, profiles of the process
)

var ranks = map[Scope]int{Anyone: 0, Read: 1, Operate: 2, Approve: 3, Admin: 4}

// Valid reports whether s is a scope that a credential can have.
func (s Scope) Valid() bool { return s == Chat || ranks[s] > 0 }

// Allows reports whether a caller with s may do what needs the other scope, which is not
// Chat.
func (s Scope) Allows(need Scope) bool { return ranks[s] >= ranks[need] }

// A Route is one path of the server.
type Route struct {
	// Pattern is one of net/http with a method. A prefix that ends with a slash
	// and has no method is cut off before Handler sees the path.
	Pattern string
	Scope   Scope // that a caller needs
	// Chat admits callers with the scope chat as well. Handler then serves them only their
	// own conversations.
	Chat    bool
	Handler http.Handler
	// Page sends a browser that is not logged in to the login page instead of
	// refusing it.
	Page bool
	// Body is the maximum size of a request body in bytes; 0: 1 MiB.
	Body int64
	// Raw takes bodies that are not JSON.
	Raw bool
	// Local serves the route on the Unix socket only.
	Local bool

	// brief marks the server's own routes that end credentials: they respond at
	// once, even if they end the caller's own credential.
	brief bool
}

// A Caller is who makes a request, as the door found out.
type Caller struct {
	// Name is that of the token; "owner" for the owner of the data directory,
	// who came by a link, by his token or by the unix socket.
	Name  string
	Scope Scope
	// Agent or Profile is what a token with the scope chat is bound to; empty: nothing.
	Agent   claybot.AgentID
	Profile string
	// Local says that the caller came by the unix socket, which only the owner can open.
	Local bool
	// Here says that the owner logged in, and came, from a browser of this machine, see Here.
	Here bool
}

// Bound reports whether the caller reaches one agent or profile only.
func (c Caller) Bound() bool { return c.Agent != "" || c.Profile != "" }

// owner is the name of the caller to whom the data directory belongs.
const owner = "owner"

type callerKey struct{}

// CallerOf returns the caller of a request; the zero Caller is unauthenticated.
func CallerOf(r *http.Request) Caller {
	c, _ := r.Context().Value(callerKey{}).(Caller)
	return c
}

// Local reports whether ctx is of a request by the unix socket, which only the owner can open.
func Local(ctx context.Context) bool {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c.Local
}

func withCaller(r *http.Request, c Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// User is the user id of the caller in the built-in chats; empty for an anonymous
// caller. The owner is Operator; a token has conversations of its own.
func User(r *http.Request) string {
	switch c := CallerOf(r); c.Name {
	case "":
		return ""
	case owner:
		return Operator
	default:
		return "token:" + c.Name
	}
}
