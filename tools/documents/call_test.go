package documents_test

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// call makes a call that waits for nothing.
func call(ctx context.Context, s *tools.Set, env tools.Env, c claybot.ToolCall) claybot.Record {
	r, _ := s.Call(ctx, env, c)
	return r
}
