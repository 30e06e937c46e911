package metrics

import (
	"math"
	"os"
	"testing"
	"time"
)

func TestReadStat(t *testing.T) {
	const line = "42 (a) (evil) 1 2) S 1 42 42 0 -1 4194304 100 0 0 0 250 150 0 0 20 0 8 0 12345 1000000 500 18446744073709551615 0 0"
	p := unknownProcess
	p.readStat([]byte(line), []byte("cpu 1 2\nbtime 1700000000\nprocesses 5\n"))
	if p.cpu != 4 || p.virtual != 1e6 || p.resident != 500*float64(os.Getpagesize()) || p.started != 1700000123.45 {
		t.Errorf("got %+v", p)
	}
	for _, odd := range []string{"", "42", "42 (a) S", "42 (a) S 1 x y z", ")"} {
		p := unknownProcess
		p.readStat([]byte(odd), nil)
		if p != unknownProcess {
			t.Errorf("%q: %+v", odd, p)
		}
	}
}

func TestReadProcess(t *testing.T) {
	p := readProcess()
	if p.cpu < 0 || p.resident < 1e5 || p.virtual < p.resident || p.files < 1 || p.mostFiles < p.files {
		t.Errorf("got %+v", p)
	}
	if off := math.Abs(float64(time.Now().Unix()) - p.started); off > 24*3600 {
		t.Errorf("the process started %v s from now", off)
	}
}
