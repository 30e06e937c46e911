package llm

import (
	"cmp"
	"math"
	"strings"

	"github.com/claybot/claybot"
)

// A Price is what a million tokens cost in US dollars, which is the same as
// millionths of a dollar for one token.
type Price struct {
	Input       float64
	CachedInput float64 // read from the provider's cache; 0: as Input
	Output      float64
	CacheWrite  float64 // written to the provider's cache; 0: as Input
}

// Prices holds prices by the beginning of a model's name, in lower case; the case of the
// model's name does not matter. The longest beginning that fits is taken.
type Prices map[string]Price

// DefaultPrices returns the prices that OpenAI and Anthropic published up to June 2026, and those of DeepSeek at its peak hours,
// which are twice those of other hours, as of api-docs.deepseek.com/quick_start/pricing in November 2026; those of Gemini as of
// ai.google.dev/gemini-api/docs/pricing on 7 October 2026, as github.com/api-evangelist/deepmind quotes the page: of gemini-3.8-flash from
// January 2027 on, twice those until then, and of gemini-3.1-pro above 200,000 tokens; what Gemini's cache gives is counted as
// input, since its price is not quoted. The pages of Mistral and Kimi could not be read.
// Other providers and later models are unknown until a configuration adds them.
func DefaultPrices() Prices {
	return Prices{
		"gpt-5.5":      {Input: 5, CachedInput: 0.5, Output: 30},
		"gpt-5.5-pro":  {Input: 30, CachedInput: 30, Output: 180},
		"gpt-5.4":      {Input: 2.5, CachedInput: 0.25, Output: 15},
		"gpt-5.4-mini": {Input: 0.75, CachedInput: 0.075, Output: 4.5},
		"gpt-5.4-nano": {Input: 0.2, CachedInput: 0.02, Output: 1.25},
		"gpt-5.4-pro":  {Input: 30, CachedInput: 30, Output: 180},
		"gpt-5.3":      {Input: 1.75, CachedInput: 0.175, Output: 14},
		"gpt-5.2":      {Input: 1.75, CachedInput: 0.175, Output: 14},
		"gpt-5.2-pro":  {Input: 21, CachedInput: 21, Output: 168},
		"gpt-5.1":      {Input: 1.25, CachedInput: 0.125, Output: 10},
		"gpt-5":        {Input: 1.25, CachedInput: 0.125, Output: 10},
		"gpt-5-mini":   {Input: 0.25, CachedInput: 0.025, Output: 2},
		"gpt-5-nano":   {Input: 0.05, CachedInput: 0.005, Output: 0.4},
		"gpt-5-pro":    {Input: 15, CachedInput: 15, Output: 120},
		"gpt-4.1":      {Input: 2, CachedInput: 0.5, Output: 8},
		"gpt-4.1-mini": {Input: 0.4, CachedInput: 0.1, Output: 1.6},
		"gpt-4.1-nano": {Input: 0.1, CachedInput: 0.025, Output: 0.4},
		"gpt-4o":       {Input: 2.5, CachedInput: 1.25, Output: 10},
		"gpt-4o-mini":  {Input: 0.15, CachedInput: 0.075, Output: 0.6},
		"o3":           {Input: 2, CachedInput: 0.5, Output: 8},
		"o3-mini":      {Input: 1.1, CachedInput: 0.55, Output: 4.4},
		"o4-mini":      {Input: 1.1, CachedInput: 0.275, Output: 4.4},

		"deepseek-flash":    {Input: 0.3, CachedInput: 0.006, Output: 1.2},
		"deepseek-v4-flash": {Input: 0.3, CachedInput: 0.006, Output: 1.2}, // the old name of deepseek-flash
		"deepseek-v4-pro":   {Input: 1.32, CachedInput: 0.044, Output: 3.96},

		"gemini-3.8-flash":      {Input: 1.5, CachedInput: 1.5, Output: 7.5},
		"gemini-3.5-flash":      {Input: 1.5, CachedInput: 1.5, Output: 9},
		"gemini-3.5-flash-lite": {Input: 0.3, CachedInput: 0.3, Output: 2.5},
		"gemini-3.1-pro":        {Input: 4, CachedInput: 4, Output: 18},

		// Names with their versions, as the next one may cost something else.
		"claude-3-haiku":    {Input: 0.25, CachedInput: 0.03, Output: 1.25, CacheWrite: 0.3},
		"claude-3-opus":     {Input: 15, CachedInput: 1.5, Output: 75, CacheWrite: 18.75},
		"claude-3-5-haiku":  {Input: 0.8, CachedInput: 0.08, Output: 4, CacheWrite: 1},
		"claude-3-5-sonnet": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75},
		"claude-3-7-sonnet": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75},
		"claude-sonnet-4-0": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75},
		"claude-sonnet-4-2": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75}, // claude-sonnet-4-20250514
		"claude-sonnet-4-5": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75},
		"claude-sonnet-4-6": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75},
		"claude-haiku-4-5":  {Input: 1, CachedInput: 0.1, Output: 5, CacheWrite: 1.25},
		"claude-opus-4-0":   {Input: 15, CachedInput: 1.5, Output: 75, CacheWrite: 18.75},
		"claude-opus-4-2":   {Input: 15, CachedInput: 1.5, Output: 75, CacheWrite: 18.75}, // claude-opus-4-20250514
		"claude-opus-4-1":   {Input: 15, CachedInput: 1.5, Output: 75, CacheWrite: 18.75},
		"claude-opus-4-5":   {Input: 5, CachedInput: 0.5, Output: 25, CacheWrite: 6.25},
		"claude-opus-4-6":   {Input: 5, CachedInput: 0.5, Output: 25, CacheWrite: 6.25},
	}
}

// With returns p with the entries of over added and put in the place of equal
// names. Neither p nor over changes.
func (p Prices) With(over Prices) Prices {
	all := make(Prices, len(p)+len(over))
	for _, from := range []Prices{p, over} {
		for name, price := range from {
			all[strings.ToLower(name)] = price
		}
	}
	return all
}

// For returns the price of a model, and false when it is unknown.
func (p Prices) For(model string) (Price, bool) {
	name := strings.ToLower(model)
	for n := len(name); n >= 0; n-- {
		if price, ok := p[name[:n]]; ok {
			return price, true
		}
	}
	return Price{}, false
}

// Cost returns what u costs with a model, in millionths of a US dollar. What was
// read from the cache and written to it are parts of the input and priced
// apart. The cost of an unknown model is unknown: known is false, and the number
// says nothing.
func (p Prices) Cost(model string, u claybot.Usage) (microUSD int64, known bool) {
	price, known := p.For(model)
	if !known {
		return 0, false
	}
	input := max(u.Input, 0)
	cached := min(max(u.CachedInput, 0), input)
	written := min(max(u.CacheWrite, 0), input-cached)
	cost := float64(input-cached-written)*price.Input +
		float64(cached)*cmp.Or(price.CachedInput, price.Input) +
		float64(written)*cmp.Or(price.CacheWrite, price.Input) +
		float64(max(u.Output, 0))*price.Output
	return int64(math.Round(cost)), true
}

// Saved returns by how much the provider's cache made u cheaper, in millionths of a US dollar; less than nothing where writing
// to it cost more. It is unknown for an unknown model.
func (p Prices) Saved(model string, u claybot.Usage) (microUSD int64, known bool) {
	cost, known := p.Cost(model, u)
	if !known {
		return 0, false
	}
	plain, _ := p.Cost(model, claybot.Usage{Input: u.Input, Output: u.Output})
	return plain - cost, true
}
