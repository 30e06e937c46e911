package metrics

import (
	"runtime"
	"runtime/metrics"
)

// A process is what the system says of this process. Fields that it does not
// tell are negative.
type process struct {
	cpu               float64 // seconds
	resident, virtual float64 // bytes
	files, mostFiles  float64
	started           float64 // unix seconds
}

// unknownProcess is a process of which nothing is known.
var unknownProcess = process{-1, -1, -1, -1, -1, -1}

// processFamilies have the names that all programs have for these figures.
func processFamilies() []*family {
	read := func(name string, k kind, help string, f func(process) float64) *family {
		return &family{name: name, kind: k, help: help, read: func(s *snapshot, set func(float64, ...string)) {
			if v := f(s.process); v >= 0 {
				set(v)
			}
		}}
	}
	return []*family{
		read("process_cpu_seconds_total", counter, "Processor time of the process.", func(p process) float64 { return p.cpu }),
		read("process_resident_memory_bytes", gauge, "Memory of the process that is in RAM.", func(p process) float64 { return p.resident }),
		read("process_virtual_memory_bytes", gauge, "Address space of the process.", func(p process) float64 { return p.virtual }),
		read("process_open_fds", gauge, "Open files and connections.", func(p process) float64 { return p.files }),
		read("process_max_fds", gauge, "The most files and connections that may be open.", func(p process) float64 { return p.mostFiles }),
		read("process_start_time_seconds", gauge, "When the process started, in seconds since 1970.", func(p process) float64 { return p.started }),
	}
}

// A runtimeFigure is a metric of the Go runtime, by the name that programs in Go
// have for it and by that of package runtime/metrics.
type runtimeFigure struct {
	name, source, help string
	kind               kind
}

var runtimeFigures = []runtimeFigure{
	{"go_goroutines", "/sched/goroutines:goroutines", "Goroutines that exist.", gauge},
	{"go_threads", "/sched/threads/total:threads", "Threads of the process.", gauge},
	{"go_sched_gomaxprocs_threads", "/sched/gomaxprocs:threads", "The most threads that run Go code at once.", gauge},
	{"go_memstats_heap_alloc_bytes", "/memory/classes/heap/objects:bytes", "Memory of objects, those included that are not collected yet.", gauge},
	{"go_memstats_sys_bytes", "/memory/classes/total:bytes", "Memory that the Go runtime has from the system.", gauge},
	{"go_memstats_next_gc_bytes", "/gc/heap/goal:bytes", "Size of the heap at which the next collection ends.", gauge},
	{"go_memstats_alloc_bytes_total", "/gc/heap/allocs:bytes", "Memory that was allocated.", counter},
	{"go_gc_cycles_total", "/gc/cycles/total:gc-cycles", "Collections of garbage.", counter},
}

func readRuntime() []metrics.Sample {
	samples := make([]metrics.Sample, len(runtimeFigures))
	for i, f := range runtimeFigures {
		samples[i].Name = f.source
	}
	metrics.Read(samples)
	return samples
}

func runtimeFamilies() []*family {
	all := []*family{{
		name: "go_info", kind: gauge, help: "1, with the version of Go as label.", labels: []string{"version"},
		read: func(_ *snapshot, set func(float64, ...string)) { set(1, runtime.Version()) },
	}}
	for i, f := range runtimeFigures {
		all = append(all, &family{name: f.name, kind: f.kind, help: f.help, read: func(s *snapshot, set func(float64, ...string)) {
			if v := s.memory[i].Value; v.Kind() == metrics.KindUint64 { // else this Go does not know it
				set(float64(v.Uint64()))
			}
		}})
	}
	return all
}
