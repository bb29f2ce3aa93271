//! The kernel that we compare with is really there, and leaves nothing behind.

use std::path::Path;

use integration::kernel_host::KernelHost;
use integration::lab::Lab;

use crate::possible;

#[test]
fn kernel_ipvs_boots_answers_and_leaves_nothing_behind_quick() {
    if !possible() {
        return;
    }
    let lab = Lab::new("kernel-host").unwrap();
    let (host, wire) = (lab.host("kernel").unwrap(), lab.segment("wire").unwrap());
    lab.connect(&host, &wire, "eth0", &[]).unwrap();
    let mut kernel = KernelHost::boot(&lab, &host, "eth0").unwrap();

    kernel.must("ipvsadm -A -t 192.0.2.10:80 -s mh").unwrap();
    kernel.must("ipvsadm -a -t 192.0.2.10:80 -r 10.77.0.11:80 -m").unwrap();
    let listing = kernel.must("ipvsadm -L -n").unwrap();
    assert!(listing.contains("TCP  192.0.2.10:80 mh"), "{listing}");
    assert!(listing.contains("-> 10.77.0.11:80                Masq"), "{listing}");
    let refused = kernel.run("ipvsadm -D -t 192.0.2.10:81").unwrap();
    assert_eq!(refused.code, 255);
    assert_eq!(refused.output, "No such service\n");

    // What it writes stays with it.
    let name = format!("switchyard-{}", lab.tag());
    kernel.must(&format!("echo secret > /tmp/{name}; echo secret > /run/{name}")).unwrap();
    assert!(!Path::new("/tmp").join(&name).exists());
    assert!(!Path::new("/run").join(&name).exists());
    assert_ne!(kernel.run(&format!("echo secret > /usr/{name}")).unwrap().code, 0);
    assert!(!Path::new("/usr").join(&name).exists());

    let pid = kernel.process().id();
    kernel.halt().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the kernel still runs");
}
