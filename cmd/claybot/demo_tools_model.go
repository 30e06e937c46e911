package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// What people say in the scene. The model knows them by these words.
const (
	saysReport   = "write a report about clay, count its words and send it to me"
	saysBreakOut = "see what you can reach from in there"
	saysNews     = "what does this page say?"
	saysTidy     = "tidy up the drafts"
	saysWho      = "which agents are there?"
	saysMore     = "tell me more about clay"
)

// reportText is what the agent writes; secretWords are what it never sees.
const (
	reportText  = "Clay is soft when it is wet.\nFired once, it stays as it is.\n"
	secretWords = "the payroll of another user"
)

// model is the scripted model: by what the person said last and what the tools
// have said since. It believes everything that it reads.
func (t *toolsPlay) model(r openaitest.Request) openaitest.Reply {
	said := r.LastUser()
	var results []string
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleUser:
			results = nil
		case llm.RoleTool:
			results = append(results, m.Content)
		}
	}
	steps := t.newsSteps
	switch {
	case said == saysReport:
		steps = reportSteps
	case said == saysBreakOut:
		steps = t.breakOutSteps
	case said == saysTidy:
		steps = tidySteps
	case said == saysWho:
		steps = whoSteps
	case strings.HasPrefix(said, saysMore):
		steps = moreSteps
	case !strings.HasPrefix(said, saysNews):
		return openaitest.Reply{Text: "Hello!"}
	}
	reply := steps(results)
	for i := range reply.Calls {
		reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", r.N, i)
	}
	return reply
}

func reportSteps(results []string) openaitest.Reply {
	switch len(results) {
	case 0:
		return useTool("write_file", "path", "report.md", "text", reportText)
	case 1:
		return useTool("shell", "command", "wc -w report.md")
	case 2:
		return useTool("memory_write", "path", "reports/first.md", "text", "# The first report\nhas "+wordCount(results[1])+" words", "scope", "owner")
	case 3:
		return useTool("send_file", "path", "report.md", "caption", "The report: "+wordCount(results[1])+" words")
	}
	return openaitest.Reply{Text: "I wrote it, counted " + wordCount(results[1]) + " words, made a note of that and sent it."}
}

var counted = regexp.MustCompile(`(?m)^\s*(\d+) report\.md$`)

// wordCount is what wc has counted.
func wordCount(result string) string {
	if m := counted.FindStringSubmatch(result); m != nil {
		return m[1]
	}
	return "unknown"
}

func (t *toolsPlay) breakOutSteps(results []string) openaitest.Reply {
	if len(results) == 0 {
		return useTool("shell", "command", t.breakOutCommand())
	}
	in, out := strings.Count(results[0], "\n"+markIn), strings.Count(results[0], "\n"+markRefused)
	return openaitest.Reply{Text: fmt.Sprintf("I tried %d ways out and was refused %d times.", in+out, out)}
}

var wanted = regexp.MustCompile(`http://localhost:\d+/collect\?note=`)

func (t *toolsPlay) newsSteps(results []string) openaitest.Reply {
	switch len(results) {
	case 0:
		return useTool("fetch_url", "url", t.news)
	case 1: // it does what the page says
		return useTool("fetch_url", "url", wanted.FindString(results[0])+url.QueryEscape("the report has 14 words"))
	}
	return openaitest.Reply{Text: "Clay is in demand, it says. It also wanted your notes to be sent elsewhere; you said no to that."}
}

func tidySteps(results []string) openaitest.Reply {
	switch len(results) {
	case 0:
		return useTool("write_file", "path", "drafts/pot.md", "text", "A pot.\n")
	case 1:
		return useTool("shell", "command", "rm -r drafts")
	}
	return openaitest.Reply{Text: "A person changed my command. It says:\n" + results[1]}
}

var named = regexp.MustCompile(`"name":"([^"]+)"`)

func whoSteps(results []string) openaitest.Reply {
	if len(results) == 0 {
		return useTool("self_list_agents")
	}
	var names []string
	for _, m := range named.FindAllStringSubmatch(results[0], -1) {
		names = append(names, m[1])
	}
	return openaitest.Reply{Text: "By MCP I learn of: " + strings.Join(names, ", ")}
}

// moreSteps says little and takes much.
func moreSteps([]string) openaitest.Reply {
	return openaitest.Reply{Text: "Clay is older than writing.", Usage: &openaitest.Usage{Prompt: 600, Completion: 250}}
}

// useTool is an answer that calls a tool with arguments, given as names and
// values in turn.
func useTool(tool string, args ...string) openaitest.Reply {
	in := make(map[string]string)
	for i := 0; i+1 < len(args); i += 2 {
		in[args[i]] = args[i+1]
	}
	b, _ := json.Marshal(in) // strings always marshal
	return openaitest.Reply{Calls: []claybot.ToolCall{{Name: tool, Args: string(b)}}}
}
