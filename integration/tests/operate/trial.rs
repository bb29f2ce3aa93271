//! A running director, and other files for it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use integration::topology::{Kind, VIP_V4, VIP_V6};
use integration::written::{service, top, web};

use crate::bed::{Bed, Said};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A bed, and files beside the director's own.
pub(crate) struct Trial {
    pub(crate) bed: Bed,
    pub(crate) own: String,
}

impl Trial {
    /// A director that follows `config`.
    pub(crate) fn of(config: String) -> Trial {
        Trial { bed: Bed::with(Kind::Nat, &config), own: config }
    }

    /// Two services of which tests change one.
    pub(crate) fn usual() -> Trial {
        Trial::of(top("copy") + &web(Kind::Nat, "rr", &[1, 2]))
    }

    pub(crate) fn own_path(&self) -> PathBuf {
        PathBuf::from(self.bed.director.status().unwrap().config.unwrap())
    }

    /// The path of a file with this content, and with the director's control socket.
    pub(crate) fn file(&self, name: &str, config: &str) -> String {
        let path = self.bed.topology.lab.logs().join(name);
        let socket = self.bed.director.socket().display();
        fs::write(&path, format!("control = \"{socket}\"\n{config}")).unwrap();
        path.display().to_string()
    }

    /// The IPv6 service by another scheduler, over other servers; one service more.
    pub(crate) fn other(&self) -> String {
        top("copy")
            + &service(Kind::Nat, VIP_V4, 80, "rr", "", &[1, 2])
            + &service(Kind::Nat, VIP_V6, 80, "wlc", "", &[1, 0, 5])
            + &service(Kind::Nat, VIP_V4, 8080, "rr", "", &[1])
    }

    pub(crate) fn listing(&self) -> String {
        self.bed.director.ipvsadm(&["-S", "-n"]).unwrap()
    }

    pub(crate) fn wait_for_listing(&self, wanted: &str) {
        let begin = Instant::now();
        while self.listing() != wanted {
            assert!(begin.elapsed() < PATIENCE, "still:\n{}", self.listing());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn waits(&self) -> bool {
        let warnings = self.bed.director.status().unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("waits to be confirmed"))
    }
}

#[track_caller]
pub(crate) fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{said:?}");
}
