//! Routes: the kernel's tables local, main and default, searched as its default rules search them.
//!
//! Not followed: policy rules, VRFs, routes by type of service, path MTU exceptions. What the
//! kernel flushes without a word (routes of an interface that went down) is the follower's care.

use std::net::IpAddr;

use ipnet::IpNet;

use super::change::{Effect, Hop, KernelRoute, RouteKind};
use super::prefix_map::{PrefixMap, bits};
use hashbrown::HashMap;

/// Numbers of the tables that the kernel's default rules search.
pub(super) const LOCAL: u32 = 255;
pub(super) const MAIN: u32 = 254;
pub(super) const DEFAULT: u32 = 253;

/// What a look-up ends with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// Send this way.
    Way(&'a KernelRoute, &'a Hop),
    /// To this machine.
    Local,
    /// Nowhere.
    Nowhere,
}

/// The routes of one prefix, best first: by priority, then as the kernel has them.
type Routes = Vec<KernelRoute>;

/// All tables of both families.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteTables {
    v4: Family,
    v6: Family,
    /// How many routes of longer prefixes there are within a block, by family (IPv4?) and the block's
    /// bits.
    fine: HashMap<(bool, u128), usize, foldhash::fast::RandomState>,
}

/// Bits that the addresses of a block have in common: where no longer prefix is within it, all of
/// them go the same way.
pub(super) fn block_length(v4: bool) -> u8 {
    if v4 { 16 } else { 48 }
}

fn block_of(v4: bool, bits: u128) -> (bool, u128) {
    (v4, bits & (u128::MAX << (128 - u32::from(block_length(v4)))))
}

#[derive(Clone, Debug, Default)]
struct Family {
    local: PrefixMap<Routes>,
    main: PrefixMap<Routes>,
    default: PrefixMap<Routes>,
}

impl RouteTables {
    /// The way to `destination`; `usable` says of a hop whether its interface can send.
    pub(super) fn find(&self, destination: IpAddr, usable: impl Fn(&Hop) -> bool) -> Found<'_> {
        let bits = bits(destination);
        let family = self.family(destination);
        let search = |table| find_in(table, bits, &usable);
        let (local, main) = (search(&family.local), search(&family.main));
        // IPv4 keeps local and main in one trie, so the longer prefix wins whichever table it is
        // in; IPv6 asks one table after the other.
        let main_first = destination.is_ipv4()
            && matches!((&local, &main), (Some((local, _)), Some((main, _))) if main > local);
        let order = if main_first { [main, local] } else { [local, main] };
        order
            .into_iter()
            .flatten()
            .find_map(|(_, route)| end(route, bits, &usable))
            .or_else(|| end(search(&family.default)?.1, bits, &usable))
            .unwrap_or(Found::Nowhere)
    }

    /// Puts a route in.
    pub(super) fn add(&mut self, route: KernelRoute, replaces: bool) -> Effect {
        let (address, length) = (bits(route.destination.addr()), route.destination.prefix_len());
        let Some(table) = self.table(&route) else {
            return Effect::Invisible;
        };
        let routes = table.entry(address, length);
        if routes.contains(&route) {
            return Effect::Invisible;
        }
        let same: Vec<usize> =
            (0..routes.len()).filter(|place| routes[*place].priority == route.priority).collect();
        match (same.as_slice(), replaces) {
            (&[place], true) => routes[place] = route,
            ([], _) => {
                let destination = route.destination;
                insert(routes, route);
                self.note(destination);
            }
            // Several routes of one prefix and priority: which of them is meant, or whether they
            // are one multipath route now, the message does not say.
            _ => {
                let destination = route.destination;
                insert(routes, route);
                self.note(destination);
                return Effect::Doubtful;
            }
        }
        Effect::Visible
    }

    /// Puts a route in behind those of its prefix and priority: the order of a dump.
    pub(super) fn append(&mut self, route: KernelRoute) {
        let (address, length) = (bits(route.destination.addr()), route.destination.prefix_len());
        let destination = route.destination;
        if let Some(table) = self.table(&route) {
            insert(table.entry(address, length), route);
            self.note(destination);
        }
    }

    /// A route has come in.
    fn note(&mut self, destination: IpNet) {
        let (v4, address) = (destination.addr().is_ipv4(), destination.addr());
        if destination.prefix_len() > block_length(v4) {
            *self.fine.entry(block_of(v4, bits(address))).or_default() += 1;
        }
    }

    /// One has gone.
    fn forget(&mut self, destination: IpNet) {
        let (v4, address) = (destination.addr().is_ipv4(), destination.addr());
        let block = block_of(v4, bits(address));
        if destination.prefix_len() > block_length(v4)
            && let Some(count) = self.fine.get_mut(&block)
        {
            *count -= 1;
            if *count == 0 {
                self.fine.remove(&block);
            }
        }
    }

    /// Whether all addresses of the block around `destination` are looked up alike.
    pub(super) fn is_uniform(&self, destination: IpAddr) -> bool {
        !self.fine.contains_key(&block_of(destination.is_ipv4(), bits(destination)))
    }

    /// Takes a route out.
    pub(super) fn remove(&mut self, route: &KernelRoute) -> Effect {
        let (address, length) = (bits(route.destination.addr()), route.destination.prefix_len());
        let Some(table) = self.table(route) else {
            return Effect::Invisible;
        };
        let Some(routes) = table.get_mut(address, length) else {
            return Effect::Invisible;
        };
        let mut matching = (0..routes.len()).filter(|place| same_way(&routes[*place], route));
        let mut removed = false;
        let effect = match (matching.next(), matching.next()) {
            (Some(place), None) => {
                routes.remove(place);
                removed = true;
                Effect::Visible
            }
            (None, _) if routes.iter().all(|known| known.priority != route.priority) => {
                Effect::Invisible
            }
            _ => Effect::Doubtful,
        };
        if routes.is_empty() {
            table.remove(address, length);
        }
        if removed {
            self.forget(route.destination);
        }
        effect
    }

    /// How many prefixes have routes.
    pub(super) fn len(&self) -> usize {
        [&self.v4, &self.v6]
            .into_iter()
            .map(|family| family.local.len() + family.main.len() + family.default.len())
            .sum()
    }

    fn family(&self, address: IpAddr) -> &Family {
        if address.is_ipv4() { &self.v4 } else { &self.v6 }
    }

    fn table(&mut self, route: &KernelRoute) -> Option<&mut PrefixMap<Routes>> {
        let family = match route.destination {
            IpNet::V4(_) => &mut self.v4,
            IpNet::V6(_) => &mut self.v6,
        };
        match route.table {
            LOCAL => Some(&mut family.local),
            MAIN => Some(&mut family.main),
            DEFAULT => Some(&mut family.default),
            _ => None,
        }
    }
}

/// Whether a look-up ends at this route: the kernel passes over routes none of whose ways works.
fn answers(route: &KernelRoute, usable: &impl Fn(&Hop) -> bool) -> bool {
    route.kind != RouteKind::Unicast || route.hops.iter().any(usable)
}

/// The route of a table that a look-up ends at, with the length of its prefix.
fn find_in<'a>(
    table: &'a PrefixMap<Routes>,
    bits: u128,
    usable: &impl Fn(&Hop) -> bool,
) -> Option<(u8, &'a KernelRoute)> {
    table.find(bits, |routes| routes.iter().find(|route| answers(route, usable)))
}

/// What a route means for a destination; `None` sends the look-up on to the next table.
fn end<'a>(
    route: &'a KernelRoute,
    bits: u128,
    usable: &impl Fn(&Hop) -> bool,
) -> Option<Found<'a>> {
    match route.kind {
        RouteKind::Throw => None,
        RouteKind::Local => Some(Found::Local),
        RouteKind::NoUnicast => Some(Found::Nowhere),
        RouteKind::Unicast => {
            let hop = choose_hop(&route.hops, bits, usable)?;
            Some(Found::Way(route, hop))
        }
    }
}

/// The hop of a multipath route that carries a destination: always the same one for the same
/// destination while the route stays as it is, in proportion to the weights over all destinations.
fn choose_hop<'a>(
    hops: &'a [Hop],
    destination: u128,
    usable: &impl Fn(&Hop) -> bool,
) -> Option<&'a Hop> {
    let mut all = hops.iter().filter(|hop| usable(hop));
    let (first, second) = (all.next()?, all.next());
    if second.is_none() {
        return Some(first);
    }
    let usable_hops = || hops.iter().filter(|hop| usable(hop));
    let total: u64 = usable_hops().map(|hop| u64::from(hop.weight.max(1))).sum();
    let mut point = spread(destination) % total;
    usable_hops().find(|hop| {
        let weight = u64::from(hop.weight.max(1));
        let here = point < weight;
        point = point.saturating_sub(weight);
        here
    })
}

/// Spreads the bits of an address over 64 (the finalizer of MurmurHash3). Not keyed: whoever picks
/// destinations here is the operator, who lists the servers.
fn spread(bits: u128) -> u64 {
    let mut hash = (bits as u64) ^ ((bits >> 64) as u64);
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

fn insert(routes: &mut Routes, route: KernelRoute) {
    let place = routes.partition_point(|known| known.priority <= route.priority);
    routes.insert(place, route);
}

/// Whether two routes of a prefix are the same one: the kernel may have marked hops dead since.
fn same_way(a: &KernelRoute, b: &KernelRoute) -> bool {
    let way = |hop: &Hop| (hop.interface, hop.gateway);
    a.priority == b.priority
        && a.kind == b.kind
        && a.hops.len() == b.hops.len()
        && a.hops.iter().map(way).eq(b.hops.iter().map(way))
}
