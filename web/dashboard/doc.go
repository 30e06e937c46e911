// Package dashboard is the web page: chats, agents, runs and administration,
// rendered on the server with html/template and updated by htmx and a small
// script.
//
// It guarantees: the page uses only the interfaces of package web and keeps no state that cannot be
// reloaded; a page reads one screenful from the store, regardless of its size; content from users,
// models and tools is escaped, and Markdown becomes HTML only through connectors.Render; there are
// no inline scripts or styles, so the strict content security policy of package web applies.
//
// To add a page, write a file <page>.go with a type that embeds pages, takes the
// interfaces it needs from web.Backend and has a method routes, and list it in
// sections; and a template templates/<page>.html that defines "main" and the
// fragments. The builders in render.go create the routes:
//
//	b.screen  a whole page in the frame
//	b.part    a fragment of it
//	b.act     something that is done; it returns words for a toast
//	b.form    the same for what answers itself
//
// An element with data-live="<url of a part>" is reloaded after a change and
// merged by the ids of its elements: focus, open details elements and edited
// forms are preserved.
//
// Only cmd imports it.
package dashboard
