package files

import (
	"bytes"
	"hash/crc32"
	"testing"
)

// FuzzLineOf: every record of a database has a line, of which the same record is made
// again; and every line is a record, of which the same line is made again if it is
// one that this package has written.
func FuzzLineOf(f *testing.F) {
	for _, body := range []string{
		"", "{}", "}", `{"type":"note"}`, `{"type":"note","crc":"00000000"}`, `{"damaged":"aGk="}`, `{"damaged":"aGk=","crc":"00000000"}`, "two\nlines}", "\x00\xff", "  ",
		`{"type":""}`, `{"damaged":"aGk="`,
	} {
		f.Add(body, uint32(0))
		f.Add(body, ^uint32(0))
		f.Add(body, uint32(1))
	}
	f.Fuzz(func(t *testing.T, body string, flip uint32) {
		crc := int64(crc32.Checksum([]byte(body), castagnoli) ^ flip)
		line := lineOf(body, crc)
		if bytes.Contains(line, []byte("\n")) || len(bytes.TrimSpace(line)) == 0 {
			t.Fatalf("%q with %x is the line %q", body, crc, line)
		}
		if b, c, _ := recordOf(line); b != body || c != crc {
			t.Errorf("%q with %08x came back as %q with %08x by way of %q", body, crc, b, c, line)
		}
	})
}

// A line that cannot be read stays the same line.
func FuzzRecordOf(f *testing.F) {
	for _, line := range []string{"{", `{"type":"note"}`, `{"type":"note","crc":"0000000g"}`, `{"damaged":"!","crc":"00000000"}`, `{"damaged":"aGk=","crc":"+0000000"}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(line, []byte("\n")) || len(bytes.TrimSpace(line)) == 0 {
			t.Skip("a record is one line that is not blank")
		}
		body, crc, fault := recordOf(line)
		again, sum, still := recordOf(lineOf(body, crc))
		if again != body || sum != crc || (fault == nil) != (still == nil) {
			t.Errorf("%q became %q with %08x (%v), then %q with %08x (%v)", line, body, crc, fault, again, sum, still)
		}
	})
}

// Documents keep their members, their order and unknown ones.
func TestVersioned(t *testing.T) {
	for _, doc := range []string{
		"{\n  \"v\": 1,\n  \"createdAt\": 5,\n  \"engine\": \"react\",\n  \"shoeSize\": 44\n}\n",
		"damaged {", "", "null", "[1]",
	} {
		if got := string(versioned(unversioned([]byte(doc)))); got != doc {
			t.Errorf("%q came back as %q", doc, got)
		}
	}
	if got := unversioned([]byte(`{"b":1,"v":1}`)); got != `{"b":1}` {
		t.Errorf("a version at the end: %q", got)
	}
}
