package texts

// What happened to a message, for /why, the page, the API and the command line, which agree.
const (
	WaitsUnusable  = "It waits until its agent can be used again, and is retried until then."
	WaitsStopped   = "It waits: an operator has stopped the agent, or what it works with, and it is handled once that is started again."
	WaitsParked    = "It is parked until its agent can be used again, and is retried until then."
	WaitsApproval  = "It waits until an operator approves its sender."
	RunPaused      = "The run is paused: it waits for %s."
	RunAtWork      = "The agent is at work on it."
	RunFailed      = "The run failed"
	KeptPart       = "What it had written until then was kept."
	AgentPaused    = "Its agent's run is paused: it waits for %s."
	WaitsBehind    = "It waits behind %d other message.|It waits behind %d other messages."
	WaitsForRun    = "It waits until its agent has ended the run that it works on."
	WaitsTurn      = "It waits for its turn."
	PartsLost      = "%d part of the reply could not be delivered.|%d parts of the reply could not be delivered."
	ReplyUnsure    = "The reply is on its way; whether it arrived is being found out."
	ReplyWaits     = "The reply waits to be sent."
	ReplySent      = "It was answered, and the platform confirmed the reply."
	ReplyElsewhere = "It was answered on another route, because its own route refuses the reply."
	NoticeLost     = "The notice about it could not be delivered."
	NoticeUnsure   = "The notice about it is on its way; whether it arrived is being found out."
	NoticeWaits    = "The notice about it waits to be sent."
	NoticeSent     = "The sender was notified."
	NoChat         = "There is no chat to notify."
)

// Why a message was not handed to its agent: the end of a sentence.
const (
	SkipCommand       = "a command, answered by claybot itself"
	SkipReset         = "dropped: the conversation was reset before its turn came"
	SkipEmpty         = "it had no text"
	SkipTooLong       = "it was too long; the sender was told"
	SkipFull          = "too many messages waited already; the sender was told"
	SkipFlowFull      = "its workflow had as many unfinished runs as it may have"
	SkipBusy          = "its workflow was still at work, and starts once at a time"
	SkipNewer         = "a newer message to its workflow took its place"
	SkipBot           = "its sender is a bot, and only ten messages an hour from a bot start a run"
	SkipFlood         = "its sender wrote more messages within a minute than limits.runs_per_minute allows, and was told so once in that hour"
	SkipOperator      = "dropped by an operator"
	SkipStopped       = "canceled before its turn came"
	SkipRunEnded      = "the run it answers had ended"
	SkipTokenRejected = "dropped, because a message sent together with it failed"
	SkipAgentDeleted  = "dropped, because its agent was deleted"
	SkipDamaged       = "damaged while it was parked; the sender was asked to send it again"
	SkipRevoked       = "dropped, because its sender may not write any more"
	SkipAccessDenied  = "erased, because an operator denied its sender access"
	SkipNotApproved   = "erased, because its sender was not approved in time"
	SkipEdit          = "it changed a message that waited"
	SkipDeletion      = "it deleted a message, or stopped its run"
	SkipLate          = "it came too late to change its message"
	SkipDeleted       = "dropped, because its sender deleted it before its turn came"
	SkipAnswer        = "the answer to a question; the run that asked went on with it"
	SkipFlow          = "it started the workflow %s"
	SkipUnfit         = "it did not fit the question that the agent had asked; the sender was told"
)

// Why a run has no reply: the beginning of a sentence.
const (
	SilentCanceled = "the run was canceled"
	SilentNoReply  = "the agent decided not to reply"
	SilentHistory  = "the answer is for the agent's history only; nothing is sent where it was asked"
	SilentAutoSend = "the agent sent no message in its run, and its profile sends no texts by themselves (auto_send: off)"
	SilentTold     = "the run failed, and its failure was told lately"
	SilentFailed   = "the run failed"
	StopUser       = "the run was stopped in the chat"
	StopReset      = "the run was stopped by a new conversation"
	StopOperator   = "an operator stopped the run"
	StopParent     = "its parent stopped the run"
	StopByTime     = "the run ended, because its question had no answer in time"
	StopByMessage  = "the run ended, because another message came in place of an answer"
)

// What /why answers. Each begins with when the message was written.
const (
	WhyAnswer    = "Your message from %s answered a question of mine."
	WhyUnfit     = "Your message from %s did not fit my question; I said so."
	WhySkipped   = "Your message from %s was not handed to the agent: %s."
	WhySafe      = "Your message from %s is safe. %s"
	WhyWaits     = "Your message from %s waits for its turn. %s"
	WhyRuns      = "Your message from %s: I began with it %s. %s"
	WhyEnded     = "Your message from %s: %s"
	WhyReference = "Reference for operators: `%s`"
)

// What /resend answers.
const (
	ResendNothing = "Every reply of mine in this conversation has been delivered, or sent again already."
	ResendWaits   = "I am still trying to deliver my last reply here. You don't have to do anything."
	Resending     = "This is my last reply that could not be delivered:"
)
