package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// slackCommand lets people write and reads what they see.
func (r *rig) slackCommand(ts *testscript.TestScript, args []string) {
	args, back := r.about(ts, args)
	defer back()
	if r.slack == nil {
		ts.Fatalf("there is no Slack; use: fakes slack")
	}
	switch {
	case (len(args) == 3 || len(args) == 4) && args[0] == "dm": // slack dm USER TEXT [VARIABLE]
		_, id := r.slack.DM(args[1], args[2])
		if len(args) == 4 {
			ts.Setenv(args[3], id)
		}
	case len(args) == 4 && args[0] == "speaks": // slack speaks USER LOCALE ZONE
		r.slack.SetUser(slacktest.User{ID: args[1], Locale: args[2], Zone: args[3]})
	case len(args) == 4 && args[0] == "edit": // slack edit CHANNEL MESSAGE TEXT
		if !r.slack.Edit(args[1], args[2], args[3]) {
			ts.Fatalf("there is no message %s", args[2])
		}
	case len(args) == 5 && (args[0] == "react" || args[0] == "unreact"): // slack react CHANNEL MESSAGE|TEXT USER NAME
		ts.Check(r.slackReact(args[0] == "unreact", args[1], args[2], args[3], args[4]))
	case len(args) == 3 && args[0] == "delete": // slack delete CHANNEL MESSAGE
		r.slack.Delete(args[1], args[2])
	case len(args) == 3 && args[0] == "push": // slack push URL SECRET: verifies the address and sends events there
		r.slack.Push(args[1], args[2], nil)
		ts.Check(r.slack.Verify())
	case len(args) == 3 && args[0] == "install": // slack install STATUS|lost FILE: with the link in a file
		r.slackInstall(ts, args[1], strings.TrimSpace(ts.ReadFile(args[2])))
	case len(args) == 1 && args[0] == "uninstall":
		r.slack.Uninstall()
	case len(args) == 3 && args[0] == "created": // slack created N REGEXP: of the newest manifest
		all := r.slack.Created()
		if strconv.Itoa(len(all)) != args[1] || !regexp.MustCompile(args[2]).MatchString(all[len(all)-1]) {
			ts.Fatalf("%d apps were created: %s", len(all), strings.Join(all, "\n"))
		}
	case len(args) == 2 && args[0] == "refreshed": // slack refreshed N: waits until the app got tokens so many times
		until(ts, func() (bool, string) {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			return r.slack.Refreshed() >= n, fmt.Sprintf("%d refreshes", r.slack.Refreshed())
		})
	case len(args) == 2 && args[0] == "revoke": // slack revoke REFRESH-TOKEN: no token is valid but this one
		r.slack.Expire()
		r.slack.Revoke(args[1])
	case len(args) == 1 && args[0] == "acked": // slack acked: waits until every event is
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ts.Check(r.slack.WaitAcked(ctx))
	case (len(args) == 4 || len(args) == 5) && args[0] == "mention": // slack mention CHANNEL[/THREAD] USER TEXT [VARIABLE]
		channel, thread, _ := strings.Cut(args[1], "/")
		id := r.slack.Write(slacktest.Post{Channel: channel, Thread: thread, User: args[2], Text: "<@" + r.slackBot() + "> " + args[3], Mention: true})
		if len(args) == 5 {
			ts.Setenv(args[4], id)
		}
	case (len(args) == 4 || len(args) == 5) && args[0] == "say": // slack say CHANNEL[/THREAD] USER TEXT [VARIABLE]: without a mention
		channel, thread, _ := strings.Cut(args[1], "/")
		id := r.slack.Write(slacktest.Post{Channel: channel, Thread: thread, User: args[2], Text: args[3]})
		if len(args) == 5 {
			ts.Setenv(args[4], id)
		}
	case len(args) == 4 && args[0] == "bot": // slack bot CHANNEL BOT TEXT: another bot mentions this one
		r.slack.Write(slacktest.Post{Channel: args[1], BotID: args[2], Subtype: "bot_message", Text: "<@" + r.slackBot() + "> " + args[3]})
	case len(args) == 2 && (args[0] == "leave" || args[0] == "join"): // slack leave CHANNEL: the bot
		r.slack.Leave(args[1], args[0] == "leave")
	case len(args) == 2 && (args[0] == "archive" || args[0] == "unarchive"): // slack archive CHANNEL
		if args[0] == "archive" {
			r.slack.Archive(args[1])
		} else {
			r.slack.Unarchive(args[1])
		}
	case len(args) == 3 && args[0] == "rename": // slack rename CHANNEL NEW: it gets a new id
		r.slack.Rename(args[1], args[2])
	case len(args) == 3 && args[0] == "title": // slack title CHANNEL NAME
		r.slack.Call(args[1], args[2])
	case len(args) == 2 && args[0] == "lack": // slack lack SCOPE
		r.slack.Lack(args[1], true)
	case len(args) == 3 && args[0] == "pause": // slack pause METHOD TIME: its next call gets a 429
		d, err := time.ParseDuration(args[2])
		ts.Check(err)
		r.slack.Fail(args[1], slacktest.Fault{RetryAfter: d})
	case len(args) == 3 && args[0] == "fail": // slack fail METHOD hang|CODE: its next call
		f := slacktest.Fault{Error: args[2]}
		if args[2] == "hang" {
			f = slacktest.Fault{Hang: true}
		}
		r.slack.Fail(args[1], f)
	case len(args) == 4 && args[0] == "slash": // slack slash CHANNEL USER TEXT: after /claybot
		r.slack.Slash(args[1], args[2], "/claybot", args[3])
	case (len(args) == 3 || len(args) == 4) && args[0] == "expect": // slack expect CHANNEL REGEXP [VARIABLE]
		r.expect(ts, "slack "+args[1], args[2:], func() []string { return r.onSlack(args[1]) })
	case len(args) == 2 && args[0] == "expect-none": // slack expect-none CHANNEL
		r.settle(ts, nil)
		r.expectNone(ts, "slack "+args[1], r.onSlack(args[1]))
	case len(args) == 4 && args[0] == "marks": // slack marks CHANNEL MESSAGE REGEXP
		until(ts, func() (bool, string) {
			marks := strings.Join(r.slack.Reactions(args[1], args[2]), " ")
			return regexp.MustCompile(args[3]).MatchString(marks), fmt.Sprintf("the reactions are %q", marks)
		})
	case len(args) == 4 && args[0] == "status": // slack status CHANNEL MESSAGE REGEXP
		until(ts, func() (bool, string) {
			status := r.slack.Status(args[1], args[2])
			return regexp.MustCompile(args[3]).MatchString(status), fmt.Sprintf("the status is %q", status)
		})
	case len(args) == 4 && args[0] == "session": // slack session CHANNEL THREAD REGEXP: status and title
		until(ts, func() (bool, string) {
			x := r.slack.Session(args[1], args[2])
			return regexp.MustCompile(args[3]).MatchString(x.Status + " " + x.Title), fmt.Sprintf("the session is %+v", x)
		})
	case len(args) == 4 && args[0] == "halt": // slack halt CHANNEL THREAD USER: presses Slack's button for a session
		ts.Check(r.slack.StopSession(args[3], args[1], args[2]))
	case len(args) == 4 && args[0] == "press": // slack press CHANNEL USER LABEL: of the newest message with that button
		r.slackPress(ts, args[1], args[2], args[3])
	case len(args) == 5 && args[0] == "fill": // slack fill CHANNEL USER LABEL JSON: presses that button and sends its form
		r.slackFill(ts, args[1], args[2], args[3], args[4])
	case len(args) == 5 && args[0] == "rate": // slack rate CHANNEL MESSAGE USER BUTTON
		for _, m := range r.slack.Posted(args[1]) {
			if m.Text == args[2] {
				args[2] = m.TS
			}
		}
		if _, err := r.slack.Rate(args[3], args[1], args[2], args[4]); err != nil {
			ts.Fatalf("%v", err)
		}
	case len(args) >= 2 && args[0] == "ask": // slack ask USER [CHANNEL MESSAGE] [QUESTION]
		r.slackAsk(ts, args[1], args[2:])
	case len(args) == 3 && args[0] == "whisper": // slack whisper USER REGEXP
		until(ts, func() (bool, string) {
			said := r.slack.Whispers(args[1])
			return slices.ContainsFunc(said, func(w slacktest.Whisper) bool { return regexp.MustCompile(args[2]).MatchString(w.Text) }), fmt.Sprintf("messages for %s alone: %+v", args[1], said)
		})
	case (len(args) == 3 || len(args) == 5 && args[3] == "lacks") && args[0] == "home": // slack home USER REGEXP [lacks REGEXP]
		page := r.slackHome(ts, args[1], args[2])
		if len(args) == 5 && regexp.MustCompile(args[4]).MatchString(page) {
			ts.Fatalf("the page shows %s: %q", args[4], page)
		}
	case len(args) == 2 && args[0] == "home-none": // slack home-none USER
		r.slackNoHome(ts, args[1])
	case len(args) == 3 && args[0] == "files": // slack files CHANNEL REGEXP
		until(ts, func() (bool, string) {
			var all []string
			for _, f := range r.slack.Files(args[1]) {
				all = append(all, f.Name+":"+f.Snippet)
			}
			files := strings.Join(all, " ")
			return regexp.MustCompile("^(" + args[2] + ")$").MatchString(files), fmt.Sprintf("the files are %q", files)
		})
	case len(args) == 3 && args[0] == "streams": // slack streams CHANNEL TEXTS
		until(ts, func() (bool, string) {
			streams, texts := 0, 0
			for _, m := range r.slack.Posted(args[1]) {
				if m.Streaming {
					streams, texts = streams+1, texts+m.Edits
				}
			}
			return fmt.Sprint(streams) == args[2] && (streams == 0 || texts > 0), fmt.Sprintf("%d messages are streams, with %d further texts", streams, texts)
		})
	default:
		ts.Fatalf("usage: slack dm|say|mention|lack|pause|fail|slash|edit|delete|acked|expect|expect-none|marks|status|streams|rate|ask|whisper|home ...")
	}
}

// slackPress presses a button of the newest message that has it.
func (r *rig) slackPress(ts *testscript.TestScript, channel, user, label string) {
	until(ts, func() (bool, string) {
		for _, m := range slices.Backward(r.slack.Posted(channel)) {
			if _, err := r.slack.Click(user, channel, m.TS, label); err == nil {
				return true, ""
			}
		}
		return false, fmt.Sprintf("no message in %s has a button %q", channel, label)
	})
}

// slackFill presses a button, and fills in and sends the form that it opens.
func (r *rig) slackFill(ts *testscript.TestScript, channel, user, label, form string) {
	r.slackPress(ts, channel, user, label)
	var view slacktest.View
	until(ts, func() (open bool, _ string) {
		view, open = r.slack.Modal(user)
		return open, "no form is open"
	})
	var texts map[string]string
	ts.Check(json.Unmarshal([]byte(form), &texts))
	values := make(map[string]any)
	for label, text := range texts {
		values[label] = text
	}
	sent, err := r.slack.Submit(context.Background(), view.ID, values)
	ts.Check(err)
	if !sent.Closed {
		ts.Fatalf("the form stays open: %+v", sent)
	}
}

// slackAsk lets a person choose "Ask claybot", for a message or anywhere, and send a question; without
// one, the form must have no field.
func (r *rig) slackAsk(ts *testscript.TestScript, user string, args []string) {
	callback, channel, message := "claybot_ask", "", ""
	if len(args) >= 2 {
		callback, channel, message, args = "claybot_ask_message", args[0], args[1], args[2:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before, _ := r.slack.Modal(user)
	if _, err := r.slack.Shortcut(user, callback, channel, message); err != nil {
		ts.Fatalf("%v", err)
	}
	var form slacktest.View
	until(ts, func() (bool, string) {
		form, _ = r.slack.Modal(user)
		return form.ID != "" && form.ID != before.ID, "no form opens"
	})
	if len(args) == 0 {
		if len(form.Inputs) != 0 {
			ts.Fatalf("the form is %+v", form)
		}
		return
	}
	if got, err := r.slack.Submit(ctx, form.ID, map[string]any{"": args[0]}); err != nil || !got.Closed {
		ts.Fatalf("sent: %+v, %v", got, err)
	}
}

// slackHome lets a person open the Home tab and waits until the page that is published then
// matches.
func (r *rig) slackHome(ts *testscript.TestScript, user, want string) (page string) {
	before := r.slack.Published(user)
	r.slack.OpenTab(user, slacktest.TabHome)
	until(ts, func() (bool, string) {
		published := r.slack.Published(user) // first: the page is that one or a newer one
		page = strings.Join(r.slack.Home(user), "\n")
		return published > before && regexp.MustCompile(want).MatchString(page), fmt.Sprintf("%d pages were published since, and the page is %q", published-before, page)
	})
	return page
}

// slackNoHome lets a person without access open the Home tab, which shows nothing; then as a
// person who had access once, and reads that it is gone. The second visit is handled after the
// first, so that a page that is published for the first is noticed.
func (r *rig) slackNoHome(ts *testscript.TestScript, user string) {
	before := r.slack.Published(user)
	r.slack.OpenTab(user, slacktest.TabHome)
	r.slack.LeaveHome(user)
	if page := r.slackHome(ts, user, "."); page != texts.HomeNoAccess || r.slack.Published(user) != before+1 {
		ts.Fatalf("%d pages were published, and the newest is %q", r.slack.Published(user)-before, page)
	}
}

// slackReact lets a person react to a message: by its id, or to the newest of the bot with a
// text.
func (r *rig) slackReact(removed bool, channel, message, user, name string) error {
	for _, m := range r.slack.Posted(channel) {
		if m.Text == message {
			message = m.TS
		}
	}
	if !r.slack.React(channel, message, user, name, removed) {
		return fmt.Errorf("there is no message %s", message)
	}
	return nil
}

// slackBot is the user of the app that a command is about.
func (r *rig) slackBot() string { return "UBOT" + strings.ToUpper(r.in) }

func (r *rig) onSlack(channel string) []string {
	var texts []string
	for _, m := range r.slack.Posted(channel) {
		texts = append(texts, m.Text)
	}
	return texts
}
