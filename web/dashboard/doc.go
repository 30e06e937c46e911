// Package dashboard is the web page: chats, agents, runs and all that an
// operator looks after, made on the server with html/template and kept fresh by
// a little script of our own and htmx.
//
// It guarantees: the page stands on the contracts of package web alone and keeps
// no state that cannot be read again; a page reads one screenful from the store, however much is there; whatever came from
// people, models or tools is text, and Markdown becomes HTML only by way of
// connectors.Render; nothing inline is needed, so the strict policy of package
// web holds.
//
// How a page is made: a file <page>.go with a type that embeds pages, takes the
// contracts it needs from web.Backend and has a method routes, and is listed in
// sections; a template templates/<page>.html that defines "main" and the fragments
// that are fetched by themselves. The builders in render.go make the routes:
//
//	b.screen  a whole page in the frame
//	b.part    a fragment of it
//	b.act     something that is done; it returns words for a toast
//	b.form    the same for what answers itself
//
// An element with data-live="<url of a part>" is fetched again when something
// changed, and merged by the ids of its elements: what has the focus, an open
// details element and a form that was edited stay as they are.
//
// Only cmd imports it.
package dashboard
