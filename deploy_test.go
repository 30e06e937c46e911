package claybot_test

import (
	"bytes"
	"cmp"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/configs"
)

// runGrace is how long a node may take to end after SIGTERM. The caller that stops it has to
// wait longer.
const runGrace = 30 * time.Second

var quoted = regexp.MustCompile(`"([A-Z][A-Z0-9]*_[A-Z0-9_]+)"`)

// knownVariables are those of the environment that claybot reads.
func knownVariables(t *testing.T) map[string]bool {
	t.Helper()
	known := make(map[string]bool)
	for _, pattern := range []string{"configs/*.go", "cmd/claybot/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range quoted.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
		}
	}
	if !known["CLAYBOT_DATA_DIR"] || !known["OPENAI_API_KEY"] {
		t.Fatal("the test does not see the variables of claybot")
	}
	return known
}

// nodeNeeds are the variables without which a node of several cannot be one.
var nodeNeeds = []string{"CLAYBOT_CONFIG", "CLAYBOT_STORAGE_URL", "CLAYBOT_NODE_NAME"}

// nodeOffers are the variables that users of both deployments fill in.
var nodeOffers = []string{
	"CLAYBOT_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN",
	"CLAYBOT_FILES_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
}

func checkVariables(t *testing.T, what string, names []string) {
	t.Helper()
	known := knownVariables(t)
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s sets %s, which claybot does not know", what, name)
		}
	}
	for _, name := range slices.Concat(nodeNeeds, nodeOffers) {
		if !slices.Contains(names, name) {
			t.Errorf("%s does not set %s", what, name)
		}
	}
}

// checkSettings loads a claybot.yaml as a node does.
func checkSettings(t *testing.T, what, text string) configs.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "claybot.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := configs.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, w := range warnings {
		t.Errorf("%s: %s", what, w)
	}
	return c
}

type composeFile struct {
	Name     string
	Node     yaml.Node `yaml:"x-node"`
	Env      yaml.Node `yaml:"x-environment"`
	Services map[string]composeService
	Networks map[string]struct {
		IPAM struct {
			Config []struct {
				Subnet netip.Prefix
				Range  netip.Prefix `yaml:"ip_range"`
			}
		}
	}
	Volumes map[string]struct{}
}

type composeService struct {
	Build *struct {
		Context, Dockerfile string
		Args                map[string]string
	}
	Image       string
	Restart     string
	Environment map[string]string
	Volumes     []string
	Networks    yaml.Node
	Ports       []string
	DependsOn   yaml.Node     `yaml:"depends_on"`
	StopGrace   time.Duration `yaml:"stop_grace_period"`
	ShmSize     string        `yaml:"shm_size"`
	ReadOnly    bool          `yaml:"read_only"`
	Tmpfs       []string
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Healthcheck *struct {
		Test        []string
		Interval    time.Duration
		Timeout     time.Duration
		StartPeriod time.Duration `yaml:"start_period"`
		Retries     int
	}
}

// uses lists the names in a list, or the keys of a map.
func uses(n yaml.Node) []string {
	var list []string
	if n.Decode(&list) == nil {
		return list
	}
	var group map[string]yaml.Node
	if n.Decode(&group) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(group))
}

func TestCompose(t *testing.T) {
	var c composeFile
	text, err := os.ReadFile("docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&c); err != nil {
		t.Fatal(err)
	}
	var upstreams []string
	for name, s := range c.Services {
		for _, other := range uses(s.DependsOn) {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s, which there is not", name, other)
			}
		}
		for _, network := range uses(s.Networks) {
			if _, ok := c.Networks[network]; !ok {
				t.Errorf("%s is in the network %s, which there is not", name, network)
			}
		}
		for _, volume := range s.Volumes {
			from, to, _ := strings.Cut(volume, ":")
			_, named := c.Volumes[from]
			if _, err := os.Stat(from); !strings.HasPrefix(to, "/") || !named && (err != nil || !strings.HasPrefix(from, "./")) {
				t.Errorf("%s: the volume %s has no source", name, volume)
			}
		}
		if s.Build == nil {
			continue
		}
		upstreams = append(upstreams, name+":8420")
		if got := s.Build.Args["VERSION"]; got != "${VERSION:-dev}" {
			t.Errorf("%s is built with the version %q", name, got)
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, cmp.Or(s.Build.Dockerfile, "Dockerfile"))); err != nil {
			t.Error(err)
		}
		checkVariables(t, name, slices.Sorted(maps.Keys(s.Environment)))
		if s.Environment["CLAYBOT_NODE_NAME"] != name {
			t.Errorf("%s is called %s", name, s.Environment["CLAYBOT_NODE_NAME"])
		}
		if s.StopGrace <= runGrace {
			t.Errorf("%s is killed after %v; its end may take %v", name, s.StopGrace, runGrace)
		}
	}
	if slices.Sort(upstreams); len(upstreams) != 3 {
		t.Errorf("nodes: %v", upstreams)
	}
	checkProxy(t, c, upstreams)
	text, err = os.ReadFile("deploy/claybot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checkSettings(t, "deploy/claybot.yaml", string(text))
}

// The compose file of one claybot is reached from its machine only, keeps its data, and has
// variables that claybot reads; the configuration of the image has no fault.
func TestComposeOfOne(t *testing.T) {
	text, err := os.ReadFile("deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c composeFile
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&c); err != nil {
		t.Fatal(err)
	}
	s, ok := c.Services["claybot"]
	if _, named := c.Volumes["data"]; !ok || len(c.Services) != 1 || !named || !slices.Equal(s.Volumes, []string{"data:/var/lib/claybot"}) {
		t.Fatalf("services and volumes: %+v", c)
	}
	if !slices.Equal(s.Ports, []string{"127.0.0.1:8420:8420"}) || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.StopGrace <= runGrace {
		t.Errorf("ports %q, read-only %t, dropped %q, %v to stop", s.Ports, s.ReadOnly, s.CapDrop, s.StopGrace)
	}
	if _, err := os.Stat(filepath.Join("deploy", s.Build.Context, "Dockerfile")); err != nil || s.Build.Args["VERSION"] != "${VERSION:-dev}" {
		t.Errorf("the build: %v, %q", err, s.Build.Args)
	}
	known := knownVariables(t)
	for name := range s.Environment {
		if !known[name] {
			t.Errorf("it passes %s, which claybot does not know", name)
		}
	}
	text, err = os.ReadFile("deploy/image.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := checkSettings(t, "deploy/image.yaml", string(text)).HTTP; got.Addr != "0.0.0.0:8420" || !got.Guard.Insecure {
		t.Errorf("the page of the image: %+v", got)
	}
}

// The image takes its version from its build, and each documented way to build it
// passes one on.
func TestImageVersion(t *testing.T) {
	for file, wants := range map[string][]string{
		"Dockerfile": {"\nARG VERSION=dev\n", "-X main.version=${VERSION}", `--build-arg VERSION="$(git describe `},
		"Makefile":   {"\tdocker build -t claybot --build-arg VERSION=$(VERSION) .\n"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
}

// checkProxy compares the proxy with the nodes: it knows them, and they it.
func checkProxy(t *testing.T, c composeFile, upstreams []string) {
	t.Helper()
	text, err := os.ReadFile("deploy/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "reverse_proxy " + strings.Join(upstreams, " ") + " {"; !strings.Contains(string(text), want) {
		t.Errorf("deploy/Caddyfile does not have %q", want)
	}
	var at map[string]struct {
		Address netip.Addr `yaml:"ipv4_address"`
	}
	networks := c.Services["proxy"].Networks
	if err := networks.Decode(&at); err != nil {
		t.Fatal(err)
	}
	for network, address := range at {
		ipam := c.Networks[network].IPAM.Config
		if len(ipam) != 1 || !ipam[0].Subnet.Contains(address.Address) || ipam[0].Range.Contains(address.Address) || !ipam[0].Subnet.Overlaps(ipam[0].Range) {
			t.Errorf("the proxy's address %s in %v", address.Address, ipam)
		}
		for _, node := range upstreams {
			name, _, _ := strings.Cut(node, ":")
			if got := c.Services[name].Environment["CLAYBOT_HTTP_PROXIES"]; got != address.Address.String() {
				t.Errorf("%s believes %s; the proxy is %s", name, got, address.Address)
			}
		}
	}
	if len(at) != 1 {
		t.Errorf("the proxy has %d addresses", len(at))
	}
}
