package texts

// What a person reads about the size of their conversation.
const (
	ContextFilling   = "Our conversation fills three quarters of my context. When it gets fuller, I compact its older part into a summary; /compact does it now, /new starts a new conversation."
	ContextCompacted = "Our conversation got too long for my context, so I have compacted its older part into a summary."
	ContextCut       = "Our conversation got too long for my context, and I couldn't summarize its older part, so I have left it out."
)
