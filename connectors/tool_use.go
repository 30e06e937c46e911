package connectors

// A ToolUse is one call of a tool, as a chat shows it. It has the field names of the
// events that tell of the call.
type ToolUse struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	Args   string `json:"argsPreview,omitempty"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	MS     int64  `json:"ms"`
}
