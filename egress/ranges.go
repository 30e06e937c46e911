package egress

import (
	"net/netip"
	"slices"
)

// nat64 are IPv6 addresses that carry an IPv4 address, to which a network that
// has only IPv6 passes packets on.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// private are the ranges that an exception of the operator may open: this machine
// and the networks around it.
var private = prefixes(
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
	"::1/128", "fc00::/7",
)

// metadata are services that clouds run for their own machines: credentials, user data,
// name servers. Each is outside the link-local ranges, which are closed anyway, and inside
// ranges that are public or that an exception may open. No exception opens these. The
// sources are the documents of the clouds, read on 2026-11-26:
//
//   - Alibaba: alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
//   - AWS: docs.aws.amazon.com/whitepapers/latest/ipv6-on-aws/supporting-amazon-vpc-services.html
//     (metadata ::254, name server ::253, time ::123) and the EKS user guide (credentials of
//     pods ::23); the whole block is Amazon's
//   - Azure: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
//   - Google: cloud.google.com/compute/docs/metadata/querying-metadata
//   - Linode: techdocs.akamai.com/cloud-computing/docs/overview-of-the-metadata-service
//   - Oracle: docs.oracle.com/en-us/iaas/Content/Compute/Tasks/gettingmetadata.htm, and the
//     signers of github.com/oracle/oci-python-sdk for IPv6; for Classic
//     docs.oracle.com/en/cloud/iaas/compute-iaas-cloud/stcsg/retrieving-instance-metadata.html
//   - Scaleway: scaleway.com/en/developers/api/instance/user-data
var metadata = prefixes(
	"100.100.100.200/32", "fd00:100::100:200/128", // Alibaba
	"fd00:ec2::/32",                            // AWS
	"168.63.129.16/32",                         // Azure
	"fd20:ce::/32",                             // Google
	"fd00:a9fe:a9fe::1/128",                    // Linode
	"192.0.0.192/32", "fd00:c1::a9fe:a9fe/128", // Oracle
	"fd00:42::42/128", // Scaleway
)

// Metadata reports an address of a cloud's metadata service outside the link-local ranges.
// No policy opens it.
func Metadata(a netip.Addr) bool {
	a = plain(a)
	return slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) })
}

// closed are the ranges that nothing opens. Those within IPv6 that carry IPv4
// addresses through a third-party network are closed whole, because the address
// behind them cannot be checked.
var closed = prefixes(
	"0.0.0.0/8",                                // this network
	"169.254.0.0/16", "fe80::/10", "fec0::/10", // link-local with metadata, site-local
	"192.0.0.0/24",                    // protocol assignments
	"192.0.2.0/24", "198.51.100.0/24", // documentation
	"203.0.113.0/24", "2001:db8::/32", "3fff::/20", // documentation
	"198.18.0.0/15", "2001:2::/48", // benchmarks
	"192.88.99.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // relays and sinks
	"224.0.0.0/4", "ff00::/8", // multicast
	"240.0.0.0/4",                             // reserved, with broadcast
	"::/96",                                   // unspecified, IPv4-compatible
	"::ffff:0:0:0/96",                         // IPv4-translated
	"64:ff9b:1::/48",                          // NAT64 of a network's own
	"2002::/16",                               // 6to4
	"2001::/23",                               // Teredo, ORCHID and other protocols
	"100::/64", "5f00::/16", "100:0:0:1::/64", // discard and segment routing
)

// global is the one range of IPv6 whose addresses are handed out to everybody.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// plain is the address that a packet to a would reach: the IPv4 address of the
// mapped form. The well-known NAT64 form stays as it is, since a network that has
// only IPv6 needs it; reachable looks inside.
func plain(a netip.Addr) netip.Addr { return a.Unmap() }

// reachable says in a few words why nothing may connect to an address; empty when
// it may. exception opens the ranges of private networks, and none else.
func reachable(a netip.Addr, exception bool) (why string) {
	if !a.IsValid() {
		return "is not an address"
	}
	if a.Zone() != "" {
		return "names an interface of this machine"
	}
	a = plain(a)
	inner := a
	if nat64.Contains(a) {
		b := a.As16()
		inner = netip.AddrFrom4([4]byte(b[12:]))
		exception = false // an exception is for the address as it was written
	}
	in := func(p netip.Prefix) bool { return p.Contains(inner) }
	switch {
	case inner == netip.IPv6Loopback(): // within ::/96, which is closed
		if exception {
			return ""
		}
		return "is on this machine"
	case Metadata(inner), slices.ContainsFunc(closed, in):
		return "is in a range that is never reached"
	case slices.ContainsFunc(private, in):
		if exception {
			return ""
		}
		return "is on this machine or in a private network"
	case inner.Is6() && !global.Contains(inner):
		return "is in a range that is never reached"
	}
	return ""
}
