//! The benchmarks work and say so in the form that programs read. What they measure is not looked
//! at here: a test that fails because the machine is busy says nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use integration::bench::{Figure, parse};
use integration::lab;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn names(figures: &[Figure]) -> BTreeSet<&str> {
    figures.iter().map(|figure| figure.name.as_str()).collect()
}

#[test]
fn quick_everything_is_measured_and_every_figure_has_its_place_in_the_json() {
    if let Err(missing) = lab::supported() {
        return println!("skipped: {missing:#}");
    }
    let folder = Folder::new("all");
    let svg = folder.file("chart.svg");
    let output = bench(&["--quick", "--json", "--svg", &svg]);
    let progress = text(&output.stderr);
    assert!(output.status.success(), "{progress}");
    let figures = parse(&text(&output.stdout)).unwrap();
    let names = names(&figures);
    assert_eq!(names.len(), figures.len(), "every name once");
    let cores = std::thread::available_parallelism().unwrap().get();
    for method in ["nat", "nat-reply", "direct", "tunnel"] {
        for family in ["", "-ipv6"] {
            for workers in 1..=cores.min(2) {
                let name = format!("pipeline/{method}{family}/1000/{workers}");
                assert!(names.contains(name.as_str()), "{name} is missing");
            }
        }
    }
    for entry in schedulers::REGISTRY {
        for servers in [3, 1000] {
            let name = format!("new/{}/{servers}", entry.name);
            assert!(names.contains(name.as_str()), "{name} is missing");
        }
    }
    for name in [
        "dht/lookup-10/equal",
        "dht/lookup-10/weighted",
        "dht/lookup-1000/equal",
        "dht/lookup-1000/weighted",
        "memory/connection",
        "stall/growth",
        "stall/expiry",
        "stall/expiry-wall",
        "publish/lost",
        "publish/longest-breath",
        "publish/lab-lost",
        "lab/throughput",
        "lab/router",
        "lab/latency-p50",
        "lab/latency-p99",
        "lab/latency-p99.9",
        "idle/cpu",
        "ipvsadm/restore",
        "ipvsadm/restore-atomic",
        "ipvsadm/list",
        "ipvsadm/connections",
        "ipvsadm/connections-client-memory",
        "ipvsadm/connections-director-memory",
        "ipvsadm/connections-lost",
    ] {
        assert!(names.contains(name), "{name} is missing; it has {names:?}");
    }
    for figure in &figures {
        let Figure { name, value, floor, ratio, unit, .. } = figure;
        assert!(value.is_finite() && *value >= 0.0 && !unit.is_empty(), "{figure:?}");
        let counted = name.ends_with("lost") || name.ends_with("time");
        assert!(floor.is_some() || counted, "{name} has no floor");
        assert!(ratio.is_none_or(|ratio| ratio > 0.0), "{figure:?}");
    }
    assert!(progress.contains("lab: throughput"), "progress goes to stderr: {progress}");
    let chart = std::fs::read_to_string(svg).unwrap();
    assert!(chart.starts_with("<svg ") && chart.ends_with("</svg>\n"));
    assert!(figures.iter().all(|figure| chart.contains(&figure.name)), "every figure has its bar");
}

#[test]
fn quick_a_run_is_narrowed_down_saved_and_compared() {
    let folder = Folder::new("compare");
    let [a, b] = [folder.file("a.json"), folder.file("b.json")];
    for (file, only) in [(&a, "pipeline/direct/1000/1"), (&b, "pipeline/direct")] {
        let output = bench(&["--quick", "--only", only, "--save", file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("pipeline/direct/1000/1"));
    }
    let saved = parse(&std::fs::read_to_string(&a).unwrap()).unwrap();
    assert_eq!(names(&saved).into_iter().collect::<Vec<_>>(), ["pipeline/direct/1000/1"]);
    let output = bench(&["--compare", &a, &b]);
    let table = text(&output.stdout);
    assert!(output.status.success() && table.contains("B/A"), "{table}");
    assert!(table.contains("only in B:"), "{table}");
}

#[test]
fn quick_what_cannot_be_measured_or_read_is_said_clearly() {
    let folder = Folder::new("wrong");
    let none = bench(&["--quick", "--only", "nothing/like/this"]);
    assert!(!none.status.success());
    assert!(text(&none.stderr).contains("nothing/like/this"), "{}", text(&none.stderr));
    let file = folder.file("other.json");
    std::fs::write(&file, "{}").unwrap();
    let wrong = bench(&["--compare", &file, &file]);
    let said = text(&wrong.stderr);
    assert!(!wrong.status.success() && said.contains(&file), "{said}");
    assert!(said.contains("bench --json"), "it says what the file should have been: {said}");
}
