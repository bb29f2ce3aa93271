//! Listings and saved rules: asked of the director piece by piece, written as they come or, where they
//! are to be in order, kept as text and not as what it was made of.

use std::io::Write;
use std::ops::ControlFlow;

use director::control::ClientError;
use director::control::api::{Refusal, RefusalKind, ServiceKey, ServiceView};
use director::control::filter::ConnectionFilter;
use serde::Serialize;

use crate::commands::{Session, no_director, written};
use crate::failure::Failure;
use crate::layout::{self, Format, rules, sort, table};
use crate::names::Names;
use crate::order::What;
use crate::refusals::told;

/// What opens, separates and closes the elements of a JSON array, one of them to a line.
const ARRAY: [&str; 3] = ["[\n", ",\n", "\n]\n"];

impl Session<'_> {
    /// `-L`
    pub(crate) fn list(&mut self, what: What, format: &Format) -> Result<(), Failure> {
        let names = if format.numeric { Names::default() } else { self.names.clone() };
        match what {
            What::Table if format.json => self.array(!format.unsorted, json),
            What::Table => {
                let status = self.director()?.status();
                let size = status.map_err(|error| self.listing_failed(&error))?.table_size;
                let head = table::head(Some(size), format);
                let text = |service: &ServiceView| table::service(service, format, &names);
                self.each_service(!format.unsorted, &head, text)
            }
            What::Service(key) => {
                let service = self.service(&key)?;
                if format.json {
                    return self.print(&format!("[\n{}\n]\n", json(&service)));
                }
                self.print(&table::head(None, format))?;
                self.print(&table::service(&service, format, &names))
            }
            What::Connections(filter) => self.connections(&filter, format, &names),
            What::Timeouts => match self.director()?.timeouts() {
                Ok(timeouts) if format.json => self.print(&format!("{}\n", json(&timeouts))),
                Ok(timeouts) => self.print(&layout::timeouts(&timeouts)),
                // ipvsadm is silent here.
                Err(ClientError::Refused { .. }) => Err(Failure::listing("")),
                Err(error) => Err(no_director(&error)),
            },
            What::Daemons => {
                self.director()?;
                self.print(if format.json { "[]\n" } else { "" })
            }
        }
    }

    /// `-S`
    pub(crate) fn save(&mut self, numeric: bool) -> Result<(), Failure> {
        let names = if numeric { Names::default() } else { self.names.clone() };
        self.each_service(true, "", |service| rules::service(service, &names))
    }

    /// `-S --full`
    pub(crate) fn save_all(&mut self) -> Result<(), Failure> {
        let timeouts = self.director()?.timeouts();
        let timeouts = timeouts.map_err(|error| self.listing_failed(&error))?;
        self.each_service(false, &rules::timeouts(&timeouts), rules::full_service)
    }

    /// Prints `head` and what `text` makes of every service; nothing when they cannot be had.
    fn each_service(
        &mut self,
        sorted: bool,
        head: &str,
        text: impl Fn(&ServiceView) -> String,
    ) -> Result<(), Failure> {
        self.director()?;
        let Session { client, output, .. } = self;
        let Some(client) = client else { return Ok(()) };
        let mut kept: Vec<(ServiceKey, String)> = Vec::new();
        let mut head = Some(head);
        let mut trouble = Ok(());
        let listed = client.each_service(|service| {
            if sorted {
                kept.push((service.spec.key, text(&service)));
            } else {
                let text = format!("{}{}", head.take().unwrap_or_default(), text(&service));
                trouble = output.write_all(text.as_bytes());
            }
            if trouble.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        listed.map_err(|error| self.listing_failed(&error))?;
        written(trouble)?;
        self.print(head.take().unwrap_or_default())?;
        sort::by_service(kept).iter().try_for_each(|(_, text)| self.print(text))
    }

    /// Prints what `element` makes of every service as a JSON array.
    fn array(
        &mut self,
        sorted: bool,
        element: impl Fn(&ServiceView) -> String,
    ) -> Result<(), Failure> {
        let [open, between, close] = ARRAY;
        let first = std::cell::Cell::new(true);
        if sorted {
            // Separators depend on the order, so they are put in when it is known.
            let mut kept = Vec::new();
            let listed = self.director()?.each_service(|service| {
                kept.push((service.spec.key, element(&service)));
                ControlFlow::Continue(())
            });
            listed.map_err(|error| self.listing_failed(&error))?;
            self.print(open)?;
            for (_, text) in sort::by_service(kept) {
                self.print(if first.replace(false) { "" } else { between })?;
                self.print(&text)?;
            }
        } else {
            self.each_service(false, open, |service| {
                let separator = if first.replace(false) { "" } else { between };
                format!("{separator}{}", element(service))
            })?;
        }
        self.print(if first.get() { close.trim_start() } else { close })
    }

    fn connections(
        &mut self,
        filter: &ConnectionFilter,
        format: &Format,
        names: &Names,
    ) -> Result<(), Failure> {
        self.director()?;
        let [open, between, close] = ARRAY;
        let header = layout::connections::header(format);
        let mut head = Some(if format.json { open } else { header.as_str() });
        let mut first = true;
        let mut trouble = Ok(());
        let mut text = String::new();
        let Session { client, output, .. } = self;
        let Some(client) = client else { return Ok(()) };
        let listed = client.connections_where(filter, |connection| {
            text.clear();
            text.push_str(head.take().unwrap_or_default());
            if format.json {
                text.push_str(if std::mem::take(&mut first) { "" } else { between });
                text.push_str(&json(&connection));
            } else {
                layout::connections::row(&mut text, &connection, names, format);
            }
            trouble = output.write_all(text.as_bytes());
            if trouble.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written(trouble)?;
        listed.map_err(|error| self.listing_failed(&error))?;
        self.print(head.take().unwrap_or_default())?;
        match (format.json, first) {
            (true, true) => self.print(close.trim_start()),
            (true, false) => self.print(close),
            (false, _) => Ok(()),
        }
    }

    fn service(&mut self, key: &ServiceKey) -> Result<ServiceView, Failure> {
        let mut found = None;
        let listed = self.director()?.each_service(|service| {
            if service.spec.key == *key {
                found = Some(service);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        listed.map_err(|error| self.listing_failed(&error))?;
        found.ok_or_else(|| {
            let message = "no such service".to_owned();
            let refusal = Refusal { error: RefusalKind::NoSuchService, message };
            Failure::listing(told(None, &refusal).line)
        })
    }
}

/// A view as one line. Views are plain structs, which cannot fail to be written.
fn json<T: Serialize>(view: &T) -> String {
    serde_json::to_string(view).unwrap_or_default()
}
