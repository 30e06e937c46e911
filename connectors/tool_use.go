package connectors

// A ToolUse is one tool call, as a chat shows it. Its field names match those of the
// events of the call.
type ToolUse struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	Args   string `json:"argsPreview,omitempty"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	MS     int64  `json:"ms"`
}
