//! Why a packet was passed or dropped: every packet has one reason, and every reason one verdict.

/// Declares the reasons with their numbers, labels and explanations, from one table.
macro_rules! reasons {
    ($($verdict:ident $number:literal $Reason:ident $label:literal $explanation:literal;)+) => {
        /// Why a packet was passed up to the host's own stack, or dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $explanation] $Reason = $number,)+
        }

        impl Reason {
            /// All reasons, in order of their numbers.
            pub const ALL: &[Reason] = &[$(Reason::$Reason),+];

            /// Its name in counters and output.
            pub const fn label(self) -> &'static str {
                match self { $(Reason::$Reason => $label,)+ }
            }

            /// What it means, in one line.
            pub const fn explanation(self) -> &'static str {
                match self { $(Reason::$Reason => $explanation,)+ }
            }

            /// Whether the packet goes up to the host's stack.
            pub const fn passes(self) -> bool {
                match self { $(Reason::$Reason => reasons!(@ $verdict),)+ }
            }
        }
    };
    (@ pass) => { true };
    (@ drop) => { false };
}

reasons! {
    pass 0 HeartbeatConsumed "heartbeat-consumed" "a heartbeat of a cluster: membership reads it beside the stack";
    pass 1 ControlConsumed "control-consumed" "a remote command to the cluster (UDP 2504 of the primary address): every host takes it";
    pass 2 NonIp "non-ip" "neither IPv4 nor IPv6, or neighbour discovery: not balanced";
    pass 3 NotCluster "not-cluster" "neither to a virtual address nor to the cluster's MAC address: none of the filter's business";
    pass 4 OwnDedicatedIp "own-dedicated-ip" "to an address of this host alone: not balanced";
    pass 5 BcastMcast "bcast-mcast" "to a broadcast or multicast address: every host takes it";
    pass 6 UnmanagedProto "unmanaged-proto" "a protocol that is not balanced, or an ICMP message that concerns no flow: every host takes it";
    pass 7 OwnBucket "own-bucket" "this host serves the bucket";
    pass 8 FlowPinned "flow-pinned" "this host holds the flow, whoever serves the bucket now";
    pass 9 DefaultHost "default-host" "no rule covers it and this is the default host";
    pass 10 SingleHostRule "single-host-rule" "a single-host rule covers it and this host takes it";
    pass 11 Related "related" "a tunnel of a PPTP client whose control connection this host holds";
    pass 12 FragFollow "frag-follow" "a later fragment of a packet that this host took";
    drop 13 NotOwner "not-owner" "another host serves the bucket";
    drop 14 RuleBlocked "rule-blocked" "a disabled rule covers it";
    drop 15 PeerDedicatedIp "peer-dedicated-ip" "to another host's own address, flooded";
    drop 16 ForeignIp "foreign-ip" "to the cluster's MAC address, but to an address that is nobody's here";
    drop 17 MartianSource "martian-source" "from an address that no client can have";
    drop 18 HostStopped "host-stopped" "this host is stopped: it serves nothing";
    drop 19 PinnedElsewhere "pinned-elsewhere" "a new connection with the ports of one that this host held, in a bucket that another serves: the old one is given up";
    drop 20 BucketTainted "bucket-tainted" "not the beginning of a flow, in a bucket in which another host still holds flows: it may be one of them";
    drop 21 Quarantine "quarantine" "this host does not fit to the cluster and serves nothing";
    drop 22 FragUnknown "frag-unknown" "a later fragment of a packet whose first one has not been seen";
    drop 23 Malformed "malformed" "headers that are cut, that cannot be, or too many IPv6 extension headers";
}

impl Reason {
    /// Its number, the place of its counter.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    pub fn from_number(number: u8) -> Option<Reason> {
        Reason::ALL.get(usize::from(number)).copied()
    }

    /// Whether a passed frame to the cluster's MAC address gets this host's own, without which the
    /// stack would not take it. What is not for one host alone stays as it is.
    pub const fn claims(self) -> bool {
        self.passes()
            && !matches!(
                self,
                Reason::HeartbeatConsumed | Reason::NonIp | Reason::NotCluster | Reason::BcastMcast
            )
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_and_labels_are_unique() {
        for (place, &reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(usize::from(reason.number()), place);
            assert_eq!(Reason::from_number(reason.number()), Some(reason));
            let same = Reason::ALL.iter().filter(|other| other.label() == reason.label());
            assert_eq!(same.count(), 1, "{reason}");
        }
        assert_eq!(Reason::from_number(Reason::ALL.len() as u8), None);
    }

    #[test]
    fn passes_come_before_drops_so_that_one_comparison_tells_them() {
        assert!(Reason::ALL.is_sorted_by_key(|reason| !reason.passes()));
        assert!(Reason::ALL.iter().all(|reason| reason.passes() == (reason.number() < 13)));
    }
}
