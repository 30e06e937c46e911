// Package examples has workflows to begin with, each with its test cases. The demo plays them.
package examples

import "embed"

// Files are the configuration and the folder flows.
//
//go:embed claybot.yaml flows
var Files embed.FS
