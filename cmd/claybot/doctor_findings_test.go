package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// Each setting that switches something off has its own finding.
func TestSettingFindings(t *testing.T) {
	h := startDaemon(t, "model: demo\ntelegram: {token: '1234567:FAKE-telegram-token-for-tests-only'}\nbudgets: [{per: all, every: day, usd: five}]\n", nil)
	st, err := h.daemon.system.Overview.Status(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, f := range st.Findings {
		if strings.HasPrefix(f.What, "configuration") {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	if want := []string{"config-secret-in-file", "config-value"}; !slices.Equal(codes, want) {
		t.Errorf("the findings are %+v, want %q", st.Findings, want)
	}
	rows := fmt.Sprint(adviceRows([][]string{{"setting", "x"}}, st.Findings))
	for _, want := range []string{"[config-secret-in-file]", "[config-value]"} {
		if !strings.Contains(rows, want) {
			t.Errorf("the status has no %s: %s", want, rows)
		}
	}
}

// A full disk has one finding, and the connectors that can store nothing have none.
func TestFullDiskIsOneFinding(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	h.daemon.system.Worker.Health.Stored(storage.ErrFull)
	st, err := h.daemon.system.Overview.Status(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	st.Disk = &overview.DiskStatus{Total: 1 << 40}
	wait := overview.ConnectorStatus{Name: "telegram"}
	wait.Health = connectors.Health{State: connectors.StateFailing, Err: "telegram: messages cannot be stored and wait at Telegram: the disk is full"}
	st.Connectors = append(st.Connectors, wait)
	for _, disk := range []*overview.DiskStatus{st.Disk, nil} {
		st.Disk = disk
		all := slices.DeleteFunc(h.daemon.findings(st), func(f overview.Finding) bool { return f.Level == overview.LevelOK })
		if len(all) != 1 || all[0].Code != "disk-full" || !strings.HasPrefix(all[0].Next, "free disk space at ") || disk != nil && !strings.HasSuffix(all[0].Text, "free: claybot cannot store messages") {
			t.Errorf("the findings are %+v", all)
		}
	}
	if _, why := h.daemon.readiness(); why.Code != "disk-full" || !strings.HasPrefix(why.Fix, "Next step: free disk space at ") {
		t.Errorf("not ready: %+v", why)
	}
}

// A disk that cannot be written although there is space, such as one that is read-only, is not told as one without
// space, and does not work again before a write works.
func TestDiskThatIsNotWrittenIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{config: new(settings), system: &agentsystem.AgentSystem{Worker: new(worker.Worker)}, stores: &stores{members: cluster.Alone(storage.Member{Name: "here"})}}
		d.config.Store(new(configs.Config))
		health := &d.system.Worker.Health
		finds := func(when string, free int64, want string, told bool) {
			t.Helper()
			var st overview.Status
			st.Disk = &overview.DiskStatus{Free: free, Total: 1 << 41}
			l := &findingList{hide: strings.NewReplacer()}
			d.diskFindings(l, st)
			got, means := "", ""
			for _, f := range l.all {
				got, means = f.Code, f.Means
			}
			if len(l.all) > 1 || got != want || (means != "") != told {
				t.Errorf("%s: %+v, want %q", when, l.all, want)
			}
		}
		health.Stored(syscall.EROFS)
		finds("read-only", 1<<40, "disk-full", false)
		finds("without space", 50<<20, "disk-full", true)
		time.Sleep(time.Minute)
		finds("without a write since", 1<<40, "", false)
		finds("with little space", 500<<20, "disk-low", true)
		health.Stored(nil)
		finds("after a write", 1<<40, overview.LevelOK, false)
	})
}

// A disk with little space has the finding of the doctor in the status, the chats of operators and on the page; the
// daemon stays ready.
func TestLowDiskIsOneFinding(t *testing.T) {
	for code, free := range map[string]int64{"disk-low": 500 << 20, "disk-full": 50 << 20} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			b := newSetupBench(t, brokenSetup{file: "language: en\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}})
			b.disk.Free = free
			d, client := b.runs(t.Context(), t)
			wantCode, text, next := spaceOf(b.disk, b.data)
			if wantCode != code {
				t.Fatalf("%d bytes are %s", free, wantCode)
			}
			st, err := d.system.Overview.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := slices.DeleteFunc(st.Findings, func(f overview.Finding) bool { return f.What != "disk" })
			if len(all) != 1 || all[0].Code != code || all[0].Text != text || all[0].Next != next {
				t.Errorf("the status says %+v, the doctor %s: %s → %s", all, code, text, next)
			}
			if !measured(all[0], st) {
				t.Error("the doctor says it twice")
			}
			if ok, why := d.readiness(); !ok {
				t.Errorf("not ready: %+v", why)
			}
			var out bytes.Buffer
			_ = (&talk{client: client, out: &out, errs: &out}).once(t.Context(), "/status") // it says what it does
			if answer := unmarked(out.String()); !strings.Contains(answer, text+" ["+code+"]") || !strings.Contains(answer, "Next step: "+next) {
				t.Errorf("the chat says %s", answer)
			}
			told := strings.Join(noticesOf(t.Context(), t, d), "\n")
			if answer := unmarked(told); strings.Count(answer, "The disk on ") != 1 || !strings.Contains(answer, codeOf(code).means+".\n"+text+"\nNext step: "+next) {
				t.Errorf("the operator reads %s", answer)
			}
			rows := fmt.Sprint(adviceRows(diskRows(st), all))
			if strings.Count(rows, next) != 1 || !strings.Contains(rows, "["+code+"]") {
				t.Errorf("claybot status shows %s", rows)
			}
		})
	}
}

// What the daemon says of a part that a check of the doctor has found as well is left out, and its next step stays.
func TestDoctorSaysItOnce(t *testing.T) {
	d := &doctor{hide: strings.NewReplacer()}
	for _, f := range [][4]string{
		{"slack", "credential-missing", "A is not set", "copy it"},
		{"daemon: slack", "credential-missing", "off: slack: A is missing", "copy it, and start again"},
		{"workspaces", "local-refused", "anyone could", "close it"},
		{"daemon: configuration", "local-refused", "reload failed: anyone could", "close it"},
		{"configuration", "config-value", "a: bad", "correct it"},
		{"daemon: configuration", "config-value", "b: bad", "correct it"},
		{"daemon: telegram", "connector-failing", "failed", "wait"},
	} {
		d.what = f[0]
		d.problem(f[1], f[2], f[3])
	}
	d.once()
	var said []string
	for _, f := range d.all {
		said = append(said, f.What+" → "+f.Next)
	}
	if want := []string{"slack → copy it, and start again", "workspaces → close it", "configuration → correct it", "daemon: configuration → correct it", "daemon: telegram → wait"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
