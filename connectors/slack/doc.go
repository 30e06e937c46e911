// Package slack connects claybot to Slack: messages come in over Socket Mode or HTTP, answers go
// out over the Web API. A Connector serves one workspace. Workspaces serves all that install an app
// by OAuth, with a Connector for each.
//
// It guarantees that an envelope is acknowledged only after its message is
// durable, and that the acknowledgement counts only when the write to the
// socket returned; that messages of one user in one channel are posted in the
// order of arrival; that at most two sockets are open, and a second one only
// while it takes over from the first; and that no token and no socket address
// appears in an error or a log line. Only the command imports it.
//
// # The life of a socket
//
//	dialing ──hello──▶ current ──told to leave, 90 % of its time──▶ successor is dialed
//	                      │                                            │ hello
//	                      │ lost                                       ▼
//	                      └──▶ closed ◀──closed by Slack, 30 s──── draining
//
// A draining socket is read, and its envelopes are acknowledged on it, until it
// closes. One goroutine, the link, owns all of these changes; each socket has
// one reader and one writer. Envelopes are processed in lanes, one for each
// user and channel, or for a channel whose members share an agent, so a slow lane does not delay others. At most maxPending
// envelopes are in the lanes; beyond that the readers block.
//
// # Questions
//
// A question becomes buttons, a menu, or a button that opens a form, and an
// offer becomes a button. Buttons and forms carry all that their handlers need,
// so questions can be answered after a restart. An action is acknowledged when
// its answer is durable or refused for good; the reason of a refusal is shown
// only to the user who acted. If Slack refuses the blocks, or a question fits
// into none, users answer with text.
package slack
