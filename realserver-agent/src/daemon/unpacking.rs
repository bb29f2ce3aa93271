//! What unpacks the tunnels: devices of the kernel, or the agent itself.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use anyhow::Result;
use ipnet::IpNet;

use super::plan::Plan;
use super::{Options, Task};
use crate::decapsulation::Policy;
use crate::device::{self, Device};
use crate::host::Preparation;
use crate::kernel_tunnel::{self, Devices};
use crate::kind::Kind;
use crate::status::TunnelView;
use crate::tunnel::{Counters, Tunnel};

/// What a tunnel depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    kinds: Vec<Kind>,
    vips: Vec<IpAddr>,
    from: Vec<IpNet>,
    endpoints: Vec<IpAddr>,
}

/// What unpacks.
#[derive(Debug)]
pub(super) struct Unpacking {
    wanted: Wanted,
    by: By,
}

#[derive(Debug)]
enum By {
    Nobody,
    Kernel(Devices),
    Agent { tunnel: Tunnel, device: Device, name: String, hushed: Devices },
}

impl Unpacking {
    /// Nothing.
    pub(super) fn nothing() -> Unpacking {
        Unpacking { wanted: Wanted::default(), by: By::Nobody }
    }

    /// Opens what the plan asks for.
    ///
    /// # Errors
    /// When a device or socket cannot be opened.
    pub(super) async fn open(
        plan: &Plan,
        options: &Options,
        preparation: &mut Preparation,
    ) -> Result<Rc<Unpacking>> {
        let wanted = wanted(plan);
        let (netlink, by) = (preparation.netlink().clone(), options.tunnel_by);
        kernel_tunnel::sweep(&netlink).await?;
        if wanted.kinds.is_empty() {
            return Ok(Rc::new(Unpacking { wanted, by: By::Nobody }));
        }
        let restricted = !wanted.from.is_empty();
        let asked = kernel_tunnel::Wanted {
            kinds: &wanted.kinds,
            own: &wanted.endpoints,
            vips: &wanted.vips,
        };
        if let Some(devices) = kernel_tunnel::choose(by, &netlink, asked, restricted).await? {
            for name in devices.names() {
                if let Err(error) = preparation.open_device(name).await {
                    devices.remove(&netlink).await;
                    return Err(error);
                }
            }
            return Ok(Rc::new(Unpacking { wanted, by: By::Kernel(devices) }));
        }
        let hushed = kernel_tunnel::hush(&netlink, asked).await;
        match Unpacking::by_agent(&wanted, &options.device, &hushed, preparation).await {
            Ok((tunnel, device)) => {
                let name = options.device.clone();
                Ok(Rc::new(Unpacking { wanted, by: By::Agent { tunnel, device, name, hushed } }))
            }
            Err(error) => {
                hushed.remove(&netlink).await;
                Err(error)
            }
        }
    }

    async fn by_agent(
        wanted: &Wanted,
        name: &str,
        hushed: &Devices,
        preparation: &mut Preparation,
    ) -> Result<(Tunnel, Device)> {
        let device = device::open(name)?;
        preparation.open_device(name).await?;
        for name in hushed.names() {
            preparation.hush_device(name).await?;
        }
        let policy = Policy { vips: wanted.vips.clone(), from: wanted.from.clone() };
        Ok((Tunnel::open(&wanted.kinds, policy)?, device))
    }

    /// Whether the plan asks for another one.
    pub(super) fn differs(&self, plan: &Plan) -> bool {
        self.wanted != wanted(plan)
    }

    /// Unpacks until a socket breaks; when others do it, for ever nothing.
    pub(super) fn task(self: Rc<Self>) -> Task {
        Box::pin(async move {
            match &self.by {
                By::Agent { tunnel, device, .. } => tunnel.run(device).await,
                By::Nobody | By::Kernel(_) => std::future::pending().await,
            }
        })
    }

    /// Ends it. Its task must be gone.
    pub(super) async fn close(self: Rc<Self>, preparation: &Preparation) {
        let Ok(Unpacking { by, .. }) = Rc::try_unwrap(self) else { return };
        if let By::Kernel(devices) | By::Agent { hushed: devices, .. } = by {
            devices.remove(preparation.netlink()).await;
        }
    }

    /// For `status`.
    pub(super) fn view(&self) -> TunnelView {
        let kinds = self.wanted.kinds.iter().map(Kind::to_string).collect();
        match &self.by {
            By::Nobody => TunnelView::default(),
            By::Kernel(devices) => TunnelView {
                kinds,
                devices: [devices.names(), devices.others()].concat(),
                by_kernel: true,
                packets: BTreeMap::new(),
            },
            By::Agent { tunnel, name, .. } => TunnelView {
                kinds,
                devices: vec![name.clone()],
                by_kernel: false,
                packets: packets(tunnel.counters()),
            },
        }
    }
}

fn wanted(plan: &Plan) -> Wanted {
    Wanted {
        kinds: plan.role.tunnels.clone(),
        vips: plan.role.vips.clone(),
        from: plan.agent.from.clone(),
        endpoints: plan.endpoints.clone(),
    }
}

fn packets(counters: Counters) -> BTreeMap<String, u64> {
    let Counters { delivered, strangers, malformed, not_served, undelivered } = counters;
    [
        ("delivered", delivered),
        ("strangers", strangers),
        ("malformed", malformed),
        ("not_served", not_served),
        ("undelivered", undelivered),
    ]
    .map(|(name, packets)| (name.to_owned(), packets))
    .into()
}
