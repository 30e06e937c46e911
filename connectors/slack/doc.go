// Package slack connects claybot to one Slack workspace: messages come in over
// Socket Mode, answers go out over the Web API.
//
// It guarantees that an envelope is acknowledged only after its message is
// durable, and that the acknowledgement counts only when the write to the
// socket returned; that messages of one person in one channel are posted in
// the order in which they came; that at most two sockets are open, and a second
// one only while it takes over from the first; and that no token and no socket
// address appears in an error or a log line. Only the command imports it.
//
// # The life of a socket
//
//	dialing ──hello──▶ current ──told to leave, 90 % of its time──▶ successor is dialed
//	                      │                                            │ hello
//	                      │ lost                                       ▼
//	                      └──▶ closed ◀──closed by Slack, 30 s──── draining
//
// A draining socket is read and its envelopes are acknowledged on it until it
// closes. One goroutine, the link, owns all of these changes; each socket has
// one reader and one writer. What the readers bring is worked on in lanes, one
// for each person and channel, so that a slow one holds up nobody else. At
// most maxPending envelopes are in the lanes; beyond that the readers wait.
//
// # Questions
//
// A question becomes buttons, a menu, or a button that opens a form, and an
// offer becomes a button. All that a tap needs travels in the button and in the
// form, so that what was asked before a restart is answered after it. A tap is
// acknowledged when its answer is durable or refused for good; a word about a
// refusal goes to who tapped alone. Where Slack takes no blocks, and where a
// question fits into none, the text is answered by writing.
package slack
