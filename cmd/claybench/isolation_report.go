package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// mostHeld is how long the daemon may let pass between two polls.
const mostHeld = 10 * time.Second

// An isolationPhase is what was measured in one phase.
type isolationPhase struct {
	fault          string           // empty: all files are well, and only the others write
	said, answered int              // messages of the others
	quantiles      [3]time.Duration // p50, p95 and p99 of their answers
	held           time.Duration    // the longest time without a poll, until the phase was over

	// Of the person whose agent has the fault.
	loudSaid, loudMeanwhile int           // messages, and those of them answered before the mend
	caughtUp                time.Duration // from the mend until all were answered
	notices                 int           // that a message has to wait
	remarks                 []string      // what else was said besides answers
}

func (p *isolationPhase) String() string {
	text := fmt.Sprintf("%-48s %5d messages, p50 %6.2f ms, p95 %6.2f ms, p99 %6.2f ms, poll held %v", p.fault, p.said,
		ms(p50(p)), ms(p95(p)), ms(p99(p)), p.held.Round(time.Millisecond))
	if p.fault != "" {
		text += fmt.Sprintf("; the faulty: %d messages, %d answered meanwhile, all %v after the mend, %d notices, %q",
			p.loudSaid, p.loudMeanwhile, p.caughtUp.Round(time.Millisecond), p.notices, p.remarks)
	}
	return text
}

// An isolationResult is what came of the scene.
type isolationResult struct {
	phases     []*isolationPhase
	unanswered int // messages of the others
	parkedLost int // messages of people with a fault that were not answered after the mend
	disorder   int // replies out of order, or twice without a mark
	stories    []string
}

// check is an error when a person has no answer, or has them out of order.
func (r *isolationResult) check() error {
	if r.unanswered+r.parkedLost+r.disorder == 0 {
		return nil
	}
	return fmt.Errorf("of the others %d messages have no answer, of those with a fault %d, and %d answers are out of order or doubled\n%s",
		r.unanswered, r.parkedLost, r.disorder, strings.Join(r.stories, "\n"))
}

// checkPolls is an error when Telegram was not asked for longer than mostHeld.
func (r *isolationResult) checkPolls() error {
	var all error
	for _, p := range r.phases {
		if p.held > mostHeld {
			all = errors.Join(all, fmt.Errorf("files %s: no poll for %v", p.fault, p.held))
		}
	}
	return all
}

// A contrast is a fault: the phases that have it, each with the one before and the one
// behind it, which have none.
type contrast struct{ before, with, behind []*isolationPhase }

// contrasts are the faults in the order in which they first came. Around each phase with
// a fault there is one without.
func (r *isolationResult) contrasts() (names []string, all map[string]*contrast) {
	all = make(map[string]*contrast)
	for i, ph := range r.phases {
		if ph.fault == "" {
			continue
		}
		c := all[ph.fault]
		if c == nil {
			c = new(contrast)
			all[ph.fault] = c
			names = append(names, ph.fault)
		}
		c.before, c.with, c.behind = append(c.before, r.phases[i-1]), append(c.with, ph), append(c.behind, r.phases[i+1])
	}
	return names, all
}

// ratios are, for each round, a quantile with the fault to the mean of those around it.
func (c *contrast) ratios(quantile func(*isolationPhase) time.Duration) (all []float64) {
	for i := range c.with {
		all = append(all, ratio(2*quantile(c.with[i]), quantile(c.before[i])+quantile(c.behind[i])))
	}
	return all
}

// noise is, for each round, a quantile before the fault to that behind it.
func (c *contrast) noise(quantile func(*isolationPhase) time.Duration) (all []float64) {
	for i := range c.with {
		all = append(all, ratio(quantile(c.before[i]), quantile(c.behind[i])))
	}
	return all
}

// medians are the medians of the quantiles of phases, in words.
func medians(phases ...*isolationPhase) string {
	var words []string
	for _, q := range []func(*isolationPhase) time.Duration{p50, p95, p99} {
		var all []int64
		for _, ph := range phases {
			all = append(all, int64(q(ph)))
		}
		words = append(words, fmt.Sprintf("%.2f", ms(time.Duration(median(all)))))
	}
	return strings.Join(words, ", ")
}

func p50(p *isolationPhase) time.Duration { return p.quantiles[0] }
func p95(p *isolationPhase) time.Duration { return p.quantiles[1] }
func p99(p *isolationPhase) time.Duration { return p.quantiles[2] }

// listed are ratios with two digits.
func listed(ratios []float64) string {
	var words []string
	for _, x := range ratios {
		words = append(words, fmt.Sprintf("%.2f", x))
	}
	return strings.Join(words, ", ")
}

// markdown is the tables: what the others saw, what those saw whose files were faulty,
// and what was promised.
func (r *isolationResult) markdown() string {
	names, all := r.contrasts()
	var b strings.Builder
	b.WriteString("| files of one more person | answers of the others | p50, p95, p99 in ms | without that person | ratio of the p50 | ratio of the p99 | in each round | p99 before to p99 behind, in each round | poll held |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, name := range names {
		c := all[name]
		answers, held := 0, time.Duration(0)
		for _, ph := range c.with {
			answers, held = answers+ph.answered, max(held, ph.held)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %.2f | %.2f | %s | %s | %.0f ms |\n",
			name, answers, medians(c.with...), medians(slices.Concat(c.before, c.behind)...),
			middle(c.ratios(p50)), middle(c.ratios(p99)), listed(c.ratios(p99)), listed(c.noise(p99)), ms(held))
	}
	b.WriteString("\n| files of that person | messages | answered before the mend | notices that they have to wait | other remarks | all answered after the mend |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|\n")
	for _, name := range names {
		var said, meanwhile, notices, remarks int
		var last time.Duration
		for _, ph := range all[name].with {
			said, meanwhile, notices, remarks = said+ph.loudSaid, meanwhile+ph.loudMeanwhile, notices+ph.notices, remarks+len(ph.remarks)
			last = max(last, ph.caughtUp)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f s |\n", name, said, meanwhile, notices, remarks, last.Seconds())
	}
	held, lowest, highest := r.floor()
	b.WriteString("\n| result | value | bar |\n|---|---:|---|\n")
	fmt.Fprintf(&b, "| messages of the others without an answer | %d | 0 |\n", r.unanswered)
	fmt.Fprintf(&b, "| messages to faulty files without an answer after the mend | %d | 0 |\n", r.parkedLost)
	fmt.Fprintf(&b, "| answers out of order or doubled | %d | 0 |\n", r.disorder)
	fmt.Fprintf(&b, "| longest time without a poll | %.0f ms | <= %.0f s |\n", ms(held), mostHeld.Seconds())
	fmt.Fprintf(&b, "| p99 of the phases in which all is well, lowest and highest | %.2f ms, %.2f ms | |\n", ms(lowest), ms(highest))
	return b.String()
}

// floor is the longest time without a poll in any phase, and how far the phases in which
// all is well differ by themselves.
func (r *isolationResult) floor() (held, lowest, highest time.Duration) {
	for _, ph := range r.phases {
		held = max(held, ph.held)
		if ph.fault == "" {
			highest = max(highest, p99(ph))
			if lowest == 0 || p99(ph) < lowest {
				lowest = p99(ph)
			}
		}
	}
	return held, lowest, highest
}

// writeIsolationReport keeps the last result of -isolation.
func writeIsolationReport(o options, s isolationSize, tables string) error {
	text := fmt.Sprintf(`
The last run of `+"`make isolation`"+`. To the real binary, %d people write a message
every %v each, at the same times in every phase of %v; the model answers at once.
An answer takes the time from the moment in which the emulated Telegram hands the
update out until the reply arrives there. In every second phase one more person writes,
%d times as often. The files of that person's agent become faulty before the phase, are
loaded in it for the first time, and are mended behind it; the next phase begins when
all that was parked is answered. Each fault comes %d times, to another person each time. A ratio is that to the
mean of the phases before and behind, in which all is well; what is not of one round is the
median of all, the higher of two. Where the ratio of those two phases is far from 1, the machine did other work, and
the ratios of that round say little. All phases are of one life of the daemon. A poll is held from the answer to the one before
until it comes. The bar is a p99 that is at most 10 %% above that without the fault.

Conditions: %s, %s/%s, %d processors, %s, seed %d.

%s`, s.others, s.every, s.phase, s.loud, s.rounds, time.Now().UTC().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.seed, tables)
	return writeSection(o.out, text, isolationHeading)
}
