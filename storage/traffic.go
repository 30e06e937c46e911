package storage

import "time"

// Traffic is how this process uses a store that cluster members share. Its counters start
// at 0 when the store opens.
type Traffic struct {
	Pools []PoolTraffic
	// Retried counts the transactions that were repeated after a conflict with another one,
	// by the conflict: ConflictDeadlock, ConflictSerialization or ConflictUnique.
	Retried map[string]int64
	// AgentsTaken and ClaimsTaken count what this process took over from members whose
	// memberships had ended.
	AgentsTaken, ClaimsTaken int64
	// NotificationsLost counts the notifications that were not sent to the other members.
	NotificationsLost int64
	// Listener is nil if the process receives no notifications.
	Listener *ListenerTraffic
}

// The conflicts after which a transaction is repeated.
const (
	ConflictDeadlock      = "deadlock"
	ConflictSerialization = "serialization"
	ConflictUnique        = "unique"
)

// PoolTraffic is the use of one pool of connections.
type PoolTraffic struct {
	Name             string
	InUse, Idle, Max int
	// Acquired counts the acquired connections, Waited those that were not available at
	// once, and WaitTime is how long those took.
	Acquired, Waited int64
	WaitTime         time.Duration
}

// ListenerTraffic is the state of the connection that receives notifications.
type ListenerTraffic struct {
	Up         bool
	Reconnects int64 // after an interruption, during which notifications may have been lost
}
