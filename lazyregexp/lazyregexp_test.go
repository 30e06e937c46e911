package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	inTest = false
	defer func() { inTest = true }()
	re := New(`^(a+)(b*)$`)
	if got := re.FindStringSubmatch("aab"); len(got) != 3 || got[1] != "aa" || got[2] != "b" {
		t.Errorf("FindStringSubmatch: %q", got)
	}
	if n := testing.AllocsPerRun(10, func() { re.MatchString("ab") }); n != 0 {
		t.Errorf("a second use allocates %v times, as if it compiled", n)
	}
	bad := New(`(`) // does not panic yet
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression did not panic")
		}
	}()
	bad.MatchString("")
}
