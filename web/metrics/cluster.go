package metrics

import "github.com/claybot/claybot/storage"

// Cluster is what a scrape reads of a member of a cluster.
type Cluster struct {
	Member  string // its name
	Live    bool   // its membership is valid
	Members int    // live members, as of its last renewal, this one included
	// MembershipsLost and LeasesLost count the memberships that this process lost, and the
	// leases of agents that it lost during a pass.
	MembershipsLost, LeasesLost int64
	storage.Traffic
}

// clusterFamilies are left out in a process that has its store for itself.
func clusterFamilies() []*family {
	read := func(name string, k kind, help string, f func(c *Cluster, set func(float64, ...string)), labels ...string) *family {
		return &family{name: name, kind: k, help: help, labels: labels, read: func(s *snapshot, set func(float64, ...string)) {
			if s.cluster != nil {
				f(s.cluster, set)
			}
		}}
	}
	pool := func(name string, k kind, help string, f func(p storage.PoolTraffic) float64) *family {
		return read(name, k, help, func(c *Cluster, set func(float64, ...string)) {
			for _, p := range c.Pools {
				set(f(p), p.Name)
			}
		}, "pool")
	}
	listener := func(name string, k kind, help string, f func(l storage.ListenerTraffic) float64) *family {
		return read(name, k, help, func(c *Cluster, set func(float64, ...string)) {
			if c.Listener != nil {
				set(f(*c.Listener))
			}
		})
	}
	return []*family{
		read("claybot_member_info", gauge, "1, with the name of this cluster member as label.", func(c *Cluster, set func(float64, ...string)) { set(1, c.Member) }, "member"),
		read("claybot_member_live", gauge, "1 while this member's membership is valid.", func(c *Cluster, set func(float64, ...string)) { set(truth(c.Live)) }),
		read("claybot_members", gauge, "Live cluster members as of this member's last renewal; 0 while it is not one.", func(c *Cluster, set func(float64, ...string)) { set(float64(c.Members)) }),
		read("claybot_memberships_lost_total", counter, "Memberships that this process lost.", func(c *Cluster, set func(float64, ...string)) { set(float64(c.MembershipsLost)) }),
		read("claybot_leases_lost_total", counter, "Leases of agents that this member lost while it worked on them.", func(c *Cluster, set func(float64, ...string)) { set(float64(c.LeasesLost)) }),
		read("claybot_takeovers_total", counter, "Agents and claims that this member took over from members whose memberships had ended.", func(c *Cluster, set func(float64, ...string)) {
			set(float64(c.AgentsTaken), "agent")
			set(float64(c.ClaimsTaken), "claim")
		}, "kind"),
		read("claybot_notifications_lost_total", counter, "Notifications to other members that were not sent.", func(c *Cluster, set func(float64, ...string)) { set(float64(c.NotificationsLost)) }),
		listener("claybot_listener_up", gauge, "1 while this member receives notifications.", func(l storage.ListenerTraffic) float64 { return truth(l.Up) }),
		listener("claybot_listener_reconnects_total", counter, "Reconnections of the connection that receives notifications.", func(l storage.ListenerTraffic) float64 { return float64(l.Reconnects) }),
		read("claybot_db_connections", gauge, "Connections to the database, by pool and state.", func(c *Cluster, set func(float64, ...string)) {
			for _, p := range c.Pools {
				set(float64(p.Idle), p.Name, "idle")
				set(float64(p.InUse), p.Name, "in_use")
			}
		}, "pool", "state"),
		pool("claybot_db_connections_max", gauge, "Limit of connections to the database.", func(p storage.PoolTraffic) float64 { return float64(p.Max) }),
		pool("claybot_db_acquires_total", counter, "Acquired connections.", func(p storage.PoolTraffic) float64 { return float64(p.Acquired) }),
		pool("claybot_db_acquires_waited_total", counter, "Acquired connections that were not available at once.", func(p storage.PoolTraffic) float64 { return float64(p.Waited) }),
		pool("claybot_db_acquire_wait_seconds_total", counter, "Time that acquirers waited for a connection.", func(p storage.PoolTraffic) float64 { return p.WaitTime.Seconds() }),
		read("claybot_db_transactions_retried_total", counter, "Transactions that were repeated after a conflict with another one.", func(c *Cluster, set func(float64, ...string)) {
			for _, conflict := range []string{storage.ConflictDeadlock, storage.ConflictSerialization, storage.ConflictUnique} {
				set(float64(c.Retried[conflict]), conflict)
			}
		}, "conflict"),
	}
}
