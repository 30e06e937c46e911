package tools

// Known is how many pairs of user and tool a Guard remembers.
func (g *Guard) Known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.known)
}
