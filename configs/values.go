package configs

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// noSecret refuses a value that looks like a token.
func noSecret(v string) (string, error) {
	if secretive(v) {
		return "", errors.New("a secret must not stand in the file; write secret: env:NAME or secret: file:path instead")
	}
	return v, nil
}

// A form is how a text looks.
type form struct {
	looks *lazyregexp.Regexp
	most  int    // bytes
	not   string // what another text is not
}

func (f form) parse(v string) (string, error) {
	if len(v) > f.most || !f.looks.MatchString(v) {
		return "", fmt.Errorf("%s is not %s", quote(v), f.not)
	}
	return v, nil
}

var forms = map[string]form{
	"name":         {lazyregexp.New(`^[a-z0-9_-]+$`), 64, "a name of at most 64 of a-z, 0-9, _ and -"},
	"member":       {lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`), 63, "a name of letters, digits and ._- of at most 63"},
	"image":        {lazyregexp.New(`^[a-z0-9][A-Za-z0-9._/:@-]*$`), 255, "the name of an image"},
	"any image":    {lazyregexp.New(`^[^ \t\r\n\x00]+$`), 300, "the name of an image"},
	"user":         {lazyregexp.New(`^[1-9][0-9]{0,8}:[1-9][0-9]{0,8}$`), 20, "a user such as 10001:10001, and not root"},
	"runtime":      {plainWord, 64, "the name of a runtime"},
	"file":         {lazyregexp.New(`^[^\r\n\x00]+$`), 4096, "the name of a file"},
	"skill":        {lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`), 64, "the name of a skill, which has 1 to 64 of a-z, 0-9 and -"},
	"scope":        {lazyregexp.New(`^[A-Za-z0-9_.:/-]+$`), 64, "a scope such as schedule"},
	"variable":     {lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`), 128, "the name of a variable"},
	"tool":         {plainName, 64, "the name of a tool"},
	"tool group":   {lazyregexp.New(`^([a-z]+|mcp:[A-Za-z0-9_-]+)$`), 64, "a group of tools such as web or mcp:<server>"},
	"rate":         {lazyregexp.New(`^([1-9][0-9]{0,2}|1000)/[smh]$`), 6, "a rate such as 5/s, 30/m or 100/h, up to 1000"},
	"tool pattern": {lazyregexp.New(`^[A-Za-z0-9_*?-]+$`), 64, "the name of a tool, nor a pattern such as mail_*"},
	"header":       {lazyregexp.New(`^[A-Za-z0-9-]+$`), 64, "the name of a header such as X-Signature"},
	"host":         {lazyregexp.New(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`), 260, "a host such as example.org, *.example.org or example.org:443"},
	"emoji":        {lazyregexp.New(`^[^\s\x00]+$`), 100, "an emoji such as 🛑, or its name on Slack, such as :octagonal_sign:"},
	"client id":    {lazyregexp.New(`^[0-9]{1,32}\.[0-9]{1,32}$`), 65, "a client ID such as 60503450.61416"},
	"match":        {lazyregexp.New(`^[^\r\n\x00]+$`), 200, "a profile, a connector, connector:channel, cron or heartbeat"},
}

var plainName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

var plainWord = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func glob(v string) (string, error) { return forms["tool pattern"].parse(v) }

// oneOf returns v where it is one of the words.
func oneOf(v string, words ...string) (string, error) {
	if !slices.Contains(words, v) {
		return "", &wordError{fmt.Errorf("%s is not one of %s", quote(v), strings.Join(words, ", ")), v, words}
	}
	return v, nil
}

func (k key) word(v string) (string, error) {
	if k.words == "" {
		return v, nil
	}
	if off := Off; v == "false" && slices.Contains(strings.Split(k.words, ","), off) {
		v = off
	}
	return oneOf(v, strings.Split(k.words, ",")...)
}

// truth reads each of the words that YAML has had for true and false, or the two of
// the key.
func (k key) truth(v string) (bool, error) {
	if yes, no, ok := strings.Cut(k.words, ","); ok {
		word, err := oneOf(map[string]string{v: v, "true": yes, "false": no}[v], yes, no)
		return word == yes, err
	}
	truth, ok := parseTruth(v)
	if !ok {
		return false, fmt.Errorf("%s is not one of true, false", quote(v))
	}
	return truth, nil
}

func parseTruth(v string) (truth, ok bool) {
	switch strings.ToLower(v) {
	case "true", "on", "yes":
		return true, true
	case "false", "off", "no":
		return false, true
	}
	return false, false
}

func (k key) number(v string) (int, error) {
	low, high, _ := strings.Cut(k.limits, "..")
	least, _ := strconv.Atoi(low) // declared in digits
	most, _ := strconv.Atoi(high)
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is not a whole number from %d to %d", quote(v), least, most)
	}
	return n, nil
}

var decimalForm = lazyregexp.New(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)

// plainDecimal reads an amount in plain decimal notation, as people write it: what looks
// otherwise may be a slip.
func plainDecimal(v string) (float64, bool) {
	f, err := strconv.ParseFloat(v, 64)
	return f, err == nil && decimalForm.MatchString(v)
}

func (k key) decimal(v string) (float64, error) {
	low, high, _ := strings.Cut(k.limits, "..")
	least, _ := strconv.ParseFloat(low, 64) // declared in digits
	most, _ := strconv.ParseFloat(high, 64)
	f, ok := plainDecimal(v)
	if !ok || f < least || f > most {
		return 0, fmt.Errorf("%s is not %s from %s to %s", quote(v), k.words, low, high)
	}
	return f, nil
}

// microUSD reads an amount of US dollars. One above 0 is at least a millionth.
func (k key) microUSD(v string) (int64, error) {
	k.words = "an amount in US dollars"
	f, err := k.decimal(v)
	micro := int64(math.Round(f * 1e6))
	if f > 0 {
		micro = max(micro, 1)
	}
	return micro, err
}

func (k key) duration(v string) (time.Duration, error) {
	low, high, _ := strings.Cut(k.limits, "..")
	least, _ := parseDuration(low) // declared as one
	most, _ := parseDuration(high)
	d, err := parseDuration(v)
	if (err != nil || d < least || d > most) && (v != "0" || k.words != "0") {
		text := fmt.Sprintf("%s is not a duration such as 90s or 30m, from %s to %s", quote(v), low, high)
		if k.words == "0" {
			text += ", nor 0"
		}
		return 0, fmt.Errorf("%s", text)
	}
	return d, nil
}

// parseDuration reads a duration such as 90s or 30m, or a number of days such as 7d.
func parseDuration(v string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(v, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		return time.Duration(days) * 24 * time.Hour, err
	}
	return time.ParseDuration(v)
}

// size reads a number of bytes such as 512m.
func (k key) size(v string) (int64, error) {
	low, high, _ := strings.Cut(k.limits, "..")
	least, _ := parseSize(low) // declared as one
	most, ok := parseSize(high)
	if !ok {
		most = math.MaxInt64
	}
	n, ok := parseSize(v)
	if k.words == "0" && v == "0" {
		return 0, nil
	}
	if !ok || n < least || n > most {
		text := fmt.Sprintf("%s is not a size such as 512m or 2g, from %s to %s", quote(v), low, high)
		if k.words == "0" {
			text += ", nor 0"
		}
		return 0, fmt.Errorf("%s", text)
	}
	return n, nil
}

func parseSize(v string) (n int64, ok bool) {
	digits := strings.TrimRight(strings.ToLower(v), "kmgtib")
	unit, known := map[string]int64{
		"": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
	}[strings.ToLower(v)[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	return n * unit, err == nil && known && n >= 1 && n <= (1<<50)/unit
}

// zone returns a time zone by its IANA name.
func zone(v string) (*time.Location, error) {
	zone, err := time.LoadLocation(v)
	if err != nil || v == "" || v == "Local" { // which are other zones on other machines
		return nil, fmt.Errorf("%s is not a time zone such as Europe/Berlin or UTC", quote(v))
	}
	return zone, nil
}

// path is that of a file beside the configuration, unless it is whole.
func (r *reader) path(v string) string {
	if v == "" || filepath.IsAbs(v) {
		return v
	}
	return filepath.Join(r.dir, v)
}

// network reads an address or a network of proxies. One that means everybody is not
// valid: what a client says about itself is not to be believed.
func network(v string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v)
	if addr, alone := netip.ParseAddr(v); alone == nil {
		addr = addr.Unmap()
		p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil || !p.IsValid() || p.Addr().Is4In6():
		return p, fmt.Errorf("%s is not an address such as 10.0.0.5, nor a network such as 10.0.0.0/8", quote(v))
	case p.Bits() == 0:
		return p, fmt.Errorf("%s means everybody; name the proxy alone", quote(v))
	}
	return p.Masked(), nil
}
