//! A connection as it is at one time, and another one made after it: for a fork of the table.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::{Connection, Control, Endpoint, Extra, Tuple};
use crate::dispatch::connections::Binding;
use crate::dispatch::sip::Call;
use crate::dispatch::state::State;

/// What a connection is at one time, apart from it.
pub(in crate::dispatch) struct Sketch {
    pub(in crate::dispatch) tuple: Tuple,
    /// Of the original.
    pub(in crate::dispatch) binding: Arc<Binding>,
    server_endpoint: Endpoint,
    state: State,
    expires: Duration,
    no_output: bool,
    active: bool,
    packets: u8,
    extra: Option<Extra>,
}

/// Copies of what connections share, by where the original is in memory.
#[derive(Default)]
pub(in crate::dispatch) struct Controls(HashMap<*const Control, Arc<Control>>);

impl Controls {
    /// The copy of `control`.
    fn of(&mut self, control: &Arc<Control>) -> Arc<Control> {
        let copy = self.0.entry(Arc::as_ptr(control));
        copy.or_insert_with(|| {
            let number = |it: &AtomicU32| AtomicU32::new(it.load(Relaxed));
            let call = |call: &Call| Box::new(Call { id: call.id.clone(), ..*call });
            Arc::new(Control {
                children: number(&control.children),
                assured: AtomicBool::new(control.assured.load(Relaxed)),
                lifetime: number(&control.lifetime),
                call: control.call.as_deref().map(call),
            })
        })
        .clone()
    }
}

impl Sketch {
    /// A connection as this one was, by another binding: for a table of its own. It is not counted on
    /// the server, which is a copy too and counts it already.
    pub(in crate::dispatch) fn made(
        self,
        binding: Arc<Binding>,
        controls: &mut Controls,
    ) -> Connection {
        let extra = self.extra.map(|Extra { control, ftp, server }| {
            let control = control.map(|control| controls.of(&control));
            let ftp = ftp.map(|helper| helper.sharing(|control| controls.of(control)));
            Box::new(Extra { control, ftp, server })
        });
        Connection {
            tuple: self.tuple,
            server_endpoint: self.server_endpoint,
            binding,
            state: self.state,
            expires: self.expires,
            no_output: self.no_output,
            active: self.active,
            packets: self.packets,
            extra,
            is_own: false,
        }
    }
}

impl Connection {
    /// What it is now.
    pub(in crate::dispatch) fn sketch(&self) -> Sketch {
        let extra = self.extra.as_deref().map(|extra| {
            let ftp = extra.ftp.as_ref().map(|helper| helper.sharing(Arc::clone));
            Extra { control: extra.control.clone(), ftp, server: extra.server }
        });
        Sketch {
            tuple: self.tuple,
            binding: self.binding.clone(),
            server_endpoint: self.server_endpoint,
            state: self.state,
            expires: self.expires,
            no_output: self.no_output,
            active: self.active,
            packets: self.packets,
            extra,
        }
    }
}
