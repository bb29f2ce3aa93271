//! The Debian package, installed, tried, removed and purged as an operator would, in a copy of the system that
//! goes away with the test: an overlay over `/` in namespaces of its own. The machine itself is not touched.
//!
//! Needs root, dpkg, and a package (`cargo xtask test package` builds it and names it in SWITCHYARD_DEB); says what
//! is missing and passes otherwise.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The package, or why there is nothing to try.
fn package() -> Result<PathBuf, String> {
    let named = std::env::var_os("SWITCHYARD_DEB").ok_or(
        "no package is named in SWITCHYARD_DEB: `cargo xtask test package` builds one and does that",
    )?;
    if Command::new("dpkg").arg("--version").output().is_err() {
        return Err("this is no Debian: there is no dpkg".to_owned());
    }
    let copy = run(Path::new("/dev/null"), true, "true");
    if !copy.status.success() {
        let said = String::from_utf8_lossy(&copy.stderr);
        return Err(format!("no copy of the system can be made (root, overlayfs): {said}"));
    }
    Ok(PathBuf::from(named))
}

/// What every script begins with: a copy of the system, in which the rest is run. What the script lists are files
/// without those that dpkg itself keeps.
const COPY: &str = r#"
set -eu
folder=$(mktemp -d)
trap 'cd /; umount -R "$folder" 2>/dev/null || true; rmdir "$folder"' EXIT
mount -t tmpfs none "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
mount -t proc none "$folder/root/proc"
mount -t tmpfs none "$folder/root/run"
mount -t tmpfs none "$folder/root/tmp"
cp "$DEB" "$folder/root/tmp/switchyard.deb"
chroot "$folder/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C sh -eu -c "
everything() { find /etc /usr /var /opt /srv -xdev ! -path '/var/lib/dpkg/*' ! -path '/var/log/*' ! -path '/var/cache/*' \
    ! -path '/var/lib/systemd/*' -printf '%p %y %m %l\n' | sort; }
install() { dpkg --install --force-confnew /tmp/switchyard.deb; }
$SCRIPT"
"#;

/// Runs a script in a copy of the system that has no package ipvsadm, nor any that depends on it, unless it is
/// to `keep` them.
fn run(deb: &Path, keep: bool, script: &str) -> Output {
    // Its scripts want an init system that the copy does not run.
    let gone = "dependents=$(dpkg-query -W -f '${Package}: ${Depends}\\n' | sed -n 's/: .*\\bipvsadm\\b.*//p')\n\
        dpkg --purge --force-all switchyard ipvsadm $dependents >/dev/null 2>&1 || true\nrm -rf /etc/switchyard\n";
    let script = if keep { script.to_owned() } else { format!("{gone}{script}") };
    let mut command = Command::new("unshare");
    command.args(["-mpf", "sh", "-c", COPY]).env("DEB", deb).env("SCRIPT", script);
    command.output().unwrap()
}

#[track_caller]
fn output_of(deb: &Path, keep: bool, script: &str) -> String {
    let output = run(deb, keep, script);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out
}

macro_rules! package_or_skip {
    () => {
        match package() {
            Ok(package) => package,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        }
    };
}

#[test]
fn quick_what_is_installed_works_and_nothing_is_left_after_a_purge() {
    let deb = package_or_skip!();
    let out = output_of(
        &deb,
        false,
        r#"
        everything > /tmp/before
        install
        for program in director dirctl realserver-agent; do $program --version; done
        for file in /usr/share/doc/switchyard/examples/*.toml; do director check $file; done
        set +e; director check; echo untouched file: $?; set -e
        ipvsadm --version 2>&1 || true
        readlink /etc/alternatives/ipvsadm
        ls /usr/share/man/man8/director.8.gz /usr/share/man/man8/dirctl-status.8.gz
        ls /usr/share/man/man5/switchyard.toml.5.gz
        ls /usr/share/man/man8/ipvsadm.8.gz /usr/share/bash-completion/completions/dirctl
        ls /usr/share/zsh/vendor-completions/_director /usr/share/fish/vendor_completions.d/dirctl.fish
        ls /usr/lib/systemd/system/switchyard-director.service /usr/lib/systemd/system/switchyard-agent.service
        ls /etc/systemd/system/multi-user.target.wants/switchyard-* 2>/dev/null && echo ENABLED
        pgrep -x director && echo STARTED
        mkdir -p /var/lib/switchyard; touch /var/lib/switchyard/health.json
        dpkg --remove switchyard
        ls /etc/switchyard/switchyard.toml
        dpkg --purge switchyard
        everything > /tmp/after
        echo difference:; diff /tmp/before /tmp/after && echo none
        "#,
    );
    for said in [
        "director 0.",
        "dirctl 0.",
        "realserver-agent 0.",
        "examples/nlb.toml: good:",
        "untouched file: 2",
        "/usr/lib/switchyard/ipvsadm\n",
        "/etc/switchyard/switchyard.toml\n",
        "difference:\nnone\n",
    ] {
        assert!(out.contains(said), "{said:?} is not there:\n{out}");
    }
    assert!(!out.contains("ENABLED") && !out.contains("STARTED"), "{out}");
}

#[test]
fn an_upgrade_keeps_the_operators_file_and_a_purge_keeps_the_operators_keys() {
    let deb = package_or_skip!();
    let out = output_of(
        &deb,
        false,
        r#"
        install
        cp /usr/share/doc/switchyard/examples/direct.toml /etc/switchyard/switchyard.toml
        echo secret > /etc/switchyard/cluster.key
        dpkg --install /tmp/switchyard.deb </dev/null
        cmp /usr/share/doc/switchyard/examples/direct.toml /etc/switchyard/switchyard.toml && echo kept
        stat -c 'mode %a' /etc/switchyard/switchyard.toml
        dpkg --purge switchyard
        ls /etc/switchyard
        "#,
    );
    assert!(out.contains("kept\n") && out.ends_with("cluster.key\n"), "{out}");
}

#[test]
fn quick_debians_ipvsadm_keeps_its_name_where_it_is_installed() {
    let deb = package_or_skip!();
    let there = Command::new("dpkg").args(["--status", "ipvsadm"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: Debian's package ipvsadm is not installed here");
        return;
    }
    let out = output_of(
        &deb,
        true,
        r#"
        sum=$(md5sum < /usr/sbin/ipvsadm)
        install
        test "$sum" = "$(md5sum < /usr/sbin/ipvsadm)" && echo untouched
        ls /usr/lib/switchyard/ipvsadm
        dpkg --purge switchyard
        test "$sum" = "$(md5sum < /usr/sbin/ipvsadm)" && echo still untouched
        "#,
    );
    assert!(out.contains("untouched\n/usr/lib") && out.ends_with("still untouched\n"), "{out}");
}
