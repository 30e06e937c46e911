package slack

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Users of the first workspace have ids without a prefix wherever they act, and all others have one: so the same
// id of two workspaces is never one person. An app of one workspace has the ids it always had.
func TestHomeWorkspace(t *testing.T) {
	for _, tt := range []struct {
		self     identity
		team     string
		want     string
		outsider bool
	}{
		{identity{Team: "T1"}, "T1", "U1", false},
		{identity{Team: "T1"}, "T2", "T2/U1", true},
		{identity{Team: "T1", Home: "T1"}, "T1", "U1", false},
		{identity{Team: "T1", Home: "T1"}, "T2", "T2/U1", true},
		{identity{Team: "T2", Home: "T1"}, "T2", "T2/U1", false},
		{identity{Team: "T2", Home: "T1"}, "T1", "U1", true},
		{identity{Team: "T2", Home: "T1"}, "T9", "T9/U1", true},
	} {
		d, outsider, ok := tt.self.principal("slack", "C1", "U1", tt.team)
		if !ok || d != claybot.User("slack", tt.self.Team+"/C1", tt.want) || outsider != tt.outsider {
			t.Errorf("%+v, %s: %+v, outsider %v", tt.self, tt.team, d, outsider)
		}
		if user, team := tt.self.local(d.UserID); user != "U1" || team != tt.team {
			t.Errorf("%+v, %s: back to %s of %s", tt.self, tt.team, user, team)
		}
	}
}

// In a workspace that is not the first one, all that people do works: Slack gets the ids that it knows.
func TestSecondWorkspace(t *testing.T) {
	inOrg(t, true, func(t *testing.T, o *org) {
		o.install("T1")
		o.install("T2")
		s := o.slacks["T2"]
		acked := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := s.WaitAcked(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		newest := func() incoming {
			t.Helper()
			acked()
			all := o.inbox.all()
			return all[len(all)-1]
		}
		s.SetUser(slacktest.User{ID: "U1", Name: "Ann"})

		s.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> hello", Mention: true})
		if in := newest(); in.to != claybot.User("slack", "T2/C1", "T2/U1") || in.message.From.Outsider || in.message.From.Name != "Ann" {
			t.Errorf("a member: %+v, %+v", in.to, in.message.From)
		}
		s.Write(slacktest.Post{Channel: "C1", User: "U1", UserTeam: "T1", Text: "<@UBOT> hello", Mention: true})
		if in := newest(); in.to != claybot.User("slack", "T2/C1", "U1") || !in.message.From.Outsider {
			t.Errorf("a user of the first workspace: %+v, %+v", in.to, in.message.From)
		}

		o.inbox.owner = "T2/U1"
		q := claybot.Question{ID: "q1", Type: claybot.QuestionBoolean, Text: "Shall I?"}
		o.inbox.asked(q)
		route := claybot.Route{Connector: "slack", ChannelID: "T2/C1", UserID: "T2/U1", Group: true}
		ts, err := o.Send(t.Context(), claybot.Outgoing{ID: "question/q1/1", Route: route, Text: q.Text, Question: &q})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Click("U1", "C1", ts, "Yes"); err != nil {
			t.Fatal(err)
		}
		acked()
		if a, ok := o.inbox.answer("q1"); !ok || a.By != "T2/U1" {
			t.Errorf("pressed: %+v", o.inbox.pressed())
		}
		s.React("C1", ts, "U1", "+1", false)
		acked()
		if news := o.inbox.news(); len(news) == 0 || !strings.Contains(news[len(news)-1], "by T2/U1 of=false group=true outsider=false") {
			t.Errorf("reactions: %q", news)
		}

		s.Slash("C1", "U1", "/claybot", "status")
		in := newest()
		if _, err := o.Send(t.Context(), claybot.Outgoing{ID: "s", Message: in.message.ID, Route: claybot.Route{Connector: "slack", ChannelID: in.to.ChannelID, UserID: in.to.UserID, Group: true}, Text: "All is well."}); err != nil {
			t.Error(err)
		}
		if said := s.Whispers("U1"); len(said) != 1 || said[0].Text != "All is well." {
			t.Errorf("alone: %+v", said)
		}

		f := s.AddFile("tea.txt", "text/plain", []byte("oolong"))
		s.Write(slacktest.Post{Channel: "DU1", User: "U1", Text: "look", Subtype: "file_share", Files: []slacktest.File{f}})
		files := newest().message.Files
		if len(files) != 1 || files[0].Source != "T2/"+f.ID {
			t.Fatalf("files: %+v", files)
		}
		body, err := o.Fetch(t.Context(), files[0])
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(body)
		if _ = body.Close(); err != nil || string(data) != "oolong" {
			t.Errorf("fetched %q, %v", data, err)
		}

		sends, open := fileOut("f1", "", []byte("a report"))
		sends.Route = claybot.Route{Connector: "slack", ChannelID: "T2/C1"}
		receipt, err := o.SendFile(t.Context(), sends, open)
		if shared := s.Files("C1"); err != nil || len(shared) != 1 || shared[0].ID != receipt || string(shared[0].Data) != "a report" || len(o.slacks["T1"].Files("C1")) != 0 {
			t.Errorf("shared: %+v, %v", shared, err)
		}

		root := s.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> a long one", Mention: true})
		acked()
		route.ThreadID = root
		part := claybot.Outgoing{ID: "stream", Route: route, Text: "It begins …", Progress: true}
		part.Edit, err = o.Send(t.Context(), part)
		part.Progress, part.Text = false, "It begins and ends."
		if err == nil {
			_, err = o.Send(t.Context(), part)
		}
		if calls := s.Calls(methodStart); err != nil || len(calls) != 1 || calls[0].Form.Get("recipient_team_id") != "T2" || calls[0].Form.Get("recipient_user_id") != "U1" {
			t.Errorf("streams: %+v, %v", calls, err)
		}
		if err := o.React(t.Context(), route, root, "👍"); err != nil || !slices.Contains(s.Reactions("C1", root), "+1") {
			t.Errorf("reaction of the bot: %v, %v", err, s.Reactions("C1", root))
		}
		said, _, err := o.Said(t.Context(), connectors.Span{Channel: "T2/C1", Limit: 50})
		if err != nil || len(said) == 0 || said[0].UserID != "T2/U1" {
			t.Errorf("said: %+v, %v", said, err)
		}
		s.OpenTab("U1", slacktest.TabHome)
		acked()
		if page := strings.Join(s.Home("U1"), "\n"); !strings.Contains(page, "of T2/U1") {
			t.Errorf("home: %q", page)
		}
		if refs := o.Refs("https://x.slack.com/archives/C1/p1700000000000100"); !slices.Equal(refs, []string{"slack/T1/C1/1700000000.000100", "slack/T2/C1/1700000000.000100"}) {
			t.Errorf("refs: %q", refs)
		}
		if n := len(o.slacks["T1"].Calls(methodPost)); n != 0 {
			t.Errorf("%d messages for T1", n)
		}
	})
}

// In a channel that two workspaces with the app share, a message is for the bot that it mentions, whichever
// workspace Slack names. It is one message, also as an app_mention, and reads there as the person's own workspace.
func TestSharedChannel(t *testing.T) {
	inOrgOf(t, false, "UBOT2", func(t *testing.T, o *org) {
		o.install("T1")
		o.install("T2")
		posted := 0
		for i, tt := range []struct {
			text, named string
			elsewhere   bool
			want        string
		}{
			{"<@UBOT2> hello", "T1", false, "T2"},
			{"well, <@UBOT2|claybot>!", "T1", false, "T2"},
			{"<@UBOT> hello", "T1", false, "T1"},
			{"<@UBOT> hello", "T2", false, "T1"},
			{"<@UBOT> and <@UBOT2>", "T2", false, "T2"},
			{"<@UBOT2> and <@UBOT>", "T1", false, "T1"},
			{"hello all", "T1", false, ""},
			{"<@UBOT3> hello", "T2", false, ""},
			{"<@UBOT2> hello", "T1", true, ""}, // T2 does not see that channel
		} {
			for _, kind := range []string{"app_mention", "message"} {
				body := fmt.Sprintf(`{"type":"event_callback","team_id":"T1","context_team_id":%[1]q,"is_ext_shared_channel":%[2]t,"authorizations":[{"team_id":%[1]q}],
					"event":{"type":%[3]q,"channel":"C1","channel_type":"channel","user":"U7","user_team":"T2","text":%[4]q,"ts":"%[5]d.000001"}}`, tt.named, !tt.elsewhere, kind, tt.text, 1700000000+i)
				if code := signed(o.Workspaces, "application/json", body); code != 200 {
					t.Errorf("%q: %d", tt.text, code)
				}
				synctest.Wait()
			}
			all := o.inbox.all()
			if tt.want != "" {
				posted++
			}
			if len(all) != posted {
				t.Fatalf("%q of %s: %d messages, want %d", tt.text, tt.named, len(all), posted)
			}
			if tt.want != "" && (all[posted-1].to.ChannelID != tt.want+"/C1" || all[posted-1].message.From.Outsider != (tt.want == "T1")) {
				t.Fatalf("%q of %s: %+v", tt.text, tt.named, all[len(all)-1].to)
			}
		}
	})
}

// What is remembered of a channel is of its workspace alone, because the same id is another channel elsewhere.
func TestWorkspaceKeys(t *testing.T) {
	keys := make(map[string]string)
	for _, team := range []string{"T1", "T2"} {
		c := New(Config{Name: "slack", Installed: &Installed{Team: team, Home: "T1"}})
		for _, key := range []string{c.titleKey("D1"), c.uploadKey("D1")} {
			if of, taken := keys[key]; taken {
				t.Errorf("%s is of %s and of %s", key, of, team)
			}
			keys[key] = team
		}
	}
}

// An app in many workspaces does all that it does in one.
func TestWorkspacesPowers(t *testing.T) {
	all, one := reflect.TypeFor[*Workspaces](), reflect.TypeFor[*Connector]()
	for i := range one.NumMethod() {
		name := one.Method(i).Name
		if _, ok := all.MethodByName(name); !ok && !slices.Contains([]string{"CreateApp", "ExamineApp", "ExamineBot"}, name) { // see Examine
			t.Errorf("no %s", name)
		}
	}
	inOrg(t, false, func(t *testing.T, o *org) {
		if o.TakesSnippets() {
			t.Error("no workspace takes snippets")
		}
		o.install("T1")
		o.install("T2")
		x, err := o.find("T1")
		if err != nil || !o.TakesSnippets() {
			t.Fatalf("no snippets, %v", err)
		}
		x.short.learn(o.log, "files:write")
		if !o.TakesSnippets() {
			t.Error("T2 takes snippets")
		}
	})
}
