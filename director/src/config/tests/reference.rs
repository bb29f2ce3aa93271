//! The reference beside the parser: the parser is asked which keys it knows, of which type, which
//! values are out of range, and whether a default means what its absence means. Tables that it takes
//! anywhere are found by asking, so that a key cannot be left undocumented; the tables of
//! `docs/configuration.md` are those of the reference.

use std::collections::BTreeSet;
use std::time::Duration;

use realserver_agent::settings::key::{KeySpec, Range};
use realserver_agent::settings::{duration, share};

use super::parse;
use crate::config::Config;
use crate::config::reference::{TABLES, Table};

/// A key that nothing has.
const UNKNOWN: &str = "no_such_key_at_all";

/// Where keys can stand.
struct Place {
    /// Path of the table within the file: `service.persistence`. One that ends with `:TYPE` has the keys
    /// that all have, and those of that type.
    path: &'static str,
    /// A right file; `@` is where a key of the table can be added, followed by its value.
    file: &'static str,
}

const fn place(path: &'static str, file: &'static str) -> Place {
    Place { path, file }
}

const SERVICE: &str = "\nforwarding = \"nat\"\nserver = [{ address = \"10.0.0.1\" }]\n";

const TCP: &str = "[[service]]\nlisten = \"192.0.2.1:80/tcp\"\n";

/// All places.
const PLACES: &[Place] = &[
    place("", "@\n"),
    place("timeouts", "timeouts = { @ }\n"),
    place("settings", "[settings]\n@\n"),
    place("service", "TCP@\nSERVICE"),
    place("service", "[[service]]\nfwmark = 1\n@\nSERVICE"),
    place(
        "service",
        "[[service]]\nlisten = \"192.0.2.1:80/udp\"\n@\nforwarding = \"direct\"\nserver = [{ address = \"10.0.0.1\" }]\n",
    ),
    place("service.timeouts", "TCPtimeouts = { @ }\nSERVICE"),
    place("service.scheduler", "TCPscheduler = { name = \"dht\", @ }\nSERVICE"),
    place("service.persistence", "TCPpersistence = { @ }\nSERVICE"),
    place("service.check:tcp", "TCPcheck = { type = \"tcp\", @ }\nSERVICE"),
    place("service.check:icmp", "TCPcheck = { type = \"icmp\", @ }\nSERVICE"),
    place("service.check:http", "TCPcheck = { type = \"http\", @ }\nSERVICE"),
    place("service.check:https", "TCPcheck = { type = \"https\", @ }\nSERVICE"),
    place("service.check:dns", "TCPcheck = { type = \"dns\", @ }\nSERVICE"),
    place("service.check:udp", "TCPcheck = { type = \"udp\", @ }\nSERVICE"),
    place(
        "service.check:exec",
        "TCPcheck = { type = \"exec\", command = [\"/bin/true\"], @ }\nSERVICE",
    ),
    place(
        "service.check:agent-check",
        "TCPcheck = { type = \"agent-check\", port = 1, @ }\nSERVICE",
    ),
    place("service.agent", "TCPagent = { @ }\nSERVICE"),
    place(
        "service.fallback",
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", @ }\nSERVICE",
    ),
    place(
        "service.feedback",
        "TCPagent = true\nfeedback = { @ }\nforwarding = \"nat\"\nserver = [{ address = \"10.0.0.1\", weight = 100 }]\n",
    ),
    place("health", "[health]\n@\n"),
    place("agent", "[agent]\n@\n"),
    place("agent.load", "[agent]\nload = { queue = 1, @ }\n"),
    place("agent.load", "[agent]\nload = { cpu = 1, @ }\n"),
    place("agent.full", "[agent]\nfull = { @ }\n"),
    place("agent.check:tcp", "[agent]\ncheck = { type = \"tcp\", @ }\n"),
    place("agent.check:http", "[agent]\ncheck = { type = \"http\", @ }\n"),
    place(
        "agent.check:exec",
        "[agent]\ncheck = { type = \"exec\", command = [\"/bin/true\"], @ }\n",
    ),
    place("mark", "[[mark]]\nmark = 1\nsource = \"10.0.0.0/8\"\n@\n"),
    place(
        "service.server",
        "TCPforwarding = \"nat\"\n[[service.server]]\naddress = \"10.0.0.1\"\n@\n",
    ),
    place(
        "service.server.tunnel",
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\ntunnel = { type = \"gre\", @ }\n",
    ),
    place(
        "service.fallback.tunnel",
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", tunnel = { type = \"gre\", @ } }\nSERVICE",
    ),
    place(
        "service.fallback",
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", @ }\nSERVICE",
    ),
    place(
        "service.server",
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\n@\n",
    ),
    place(
        "service.server.tunnel",
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\ntunnel = { type = \"gue\", @ }\n",
    ),
    place(
        "service.fallback.tunnel",
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", tunnel = { type = \"gue\", @ } }\nSERVICE",
    ),
    place(
        "nlb.rule",
        "[nlb]\nhosts = [\"10.0.0.1\"]\n[[nlb.rule]]\nports = 80\nfilter = \"single\"\n@\n",
    ),
    place("nlb", "[nlb]\n@\n"),
    place("nlb.rule", "[nlb]\nhosts = [\"10.0.0.1\"]\n[[nlb.rule]]\nports = 80\n@\n"),
];

impl Place {
    fn kind(&self) -> Option<&'static str> {
        self.path.split_once(':').map(|(_, kind)| kind)
    }

    /// Path without the kind.
    fn table(&self) -> &'static str {
        self.path.split(':').next().unwrap_or_default()
    }

    /// Files for the same table: some keys need another one.
    fn alike(&self) -> impl Iterator<Item = &'static Place> {
        let path = self.path;
        PLACES.iter().filter(move |place| place.path == path)
    }

    /// The file with something added to the table.
    fn with(&self, added: &str) -> Result<Config, String> {
        let top = if self.path.is_empty() && added.starts_with("interfaces") {
            ""
        } else {
            "interfaces = [\"eth0\"]\n"
        };
        let mut file = self.file.replace("SERVICE", SERVICE).replace("TCP", TCP);
        if added.is_empty() {
            file = file.replace(", @", "");
        }
        parse(&format!("{top}{}", file.replace('@', added))).map_err(|error| error.to_string())
    }

    /// Keys that the parser says it knows here.
    fn known(&self) -> BTreeSet<String> {
        let said = self.with(&format!("{UNKNOWN} = 1")).unwrap_err();
        let after = said.split(&format!("{UNKNOWN}: unknown key")).nth(1);
        let listed = after.and_then(|rest| rest.split("known are ").nth(1));
        let listed = listed.unwrap_or_else(|| panic!("{}: {said}", self.path));
        let line = listed.lines().next().unwrap_or_default();
        line.split(", ").map(str::to_owned).collect()
    }

    /// The keys that the reference has for it.
    fn keys(&self) -> Vec<&'static KeySpec> {
        let path = as_told(self.table());
        let by_type = format!("{path}, by type");
        let tables = TABLES.iter().filter(|table| table.path == path || table.path == by_type);
        let kind = self.kind();
        let is_here = |(of, _): &(&str, _)| {
            of.is_empty() || kind.is_some_and(|kind| of.split(", ").any(|one| one == kind))
        };
        tables.flat_map(Table::rows).filter(is_here).map(|(_, key)| key).collect()
    }

    /// What the parser says to this value of the key, in this place or one that is alike.
    fn says(&self, key: &KeySpec, value: &str) -> Vec<String> {
        let added = format!("{} = {value}", key.name);
        self.alike().map(|place| place.with(&added).err().unwrap_or_default()).collect()
    }
}

/// The table of the reference that tells of the table at `path`: some are alike.
fn as_told(path: &str) -> &str {
    match path {
        "service.timeouts" => "timeouts",
        "service.fallback.tunnel" => "service.server.tunnel",
        path => path,
    }
}

/// Whether the key stands in the file already, with a value that is right.
fn is_there(said: &[String]) -> bool {
    said.iter().any(|said| said.contains("duplicate key"))
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
const END: &str = "<!-- end of keys -->";

/// `UPDATE_GOLDEN=1 cargo test -p director reference` writes them.
#[test]
fn the_page_has_the_tables_of_the_reference() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut written = page.clone();
    for table in TABLES {
        let path = if table.path.is_empty() { "the top" } else { table.path };
        let begin = format!("<!-- keys of {path} -->\n");
        let (before, rest) = written.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let (_, after) = rest.split_once(END).expect(END);
        written = format!("{before}{begin}{}{END}{after}", table.markdown());
    }
    assert_eq!(written.matches(END).count(), TABLES.len(), "a table of nothing");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(PAGE, written).unwrap();
    }
    assert!(page == written, "UPDATE_GOLDEN=1 cargo test -p director reference writes the tables");
}

#[test]
fn every_key_that_the_parser_takes_is_in_the_reference_and_no_other() {
    for place in PLACES {
        let keys: BTreeSet<String> = place.keys().iter().map(|key| key.name.to_owned()).collect();
        assert_eq!(keys, place.known(), "keys of {} in the reference, and known", place.path);
    }
    for table in TABLES {
        let path = table.path.split(',').next().unwrap_or_default();
        assert!(PLACES.iter().any(|place| place.table() == path), "nothing asks for {path}");
    }
}

#[test]
fn every_table_that_the_parser_takes_is_in_the_reference() {
    for place in PLACES {
        for key in place.known() {
            let path = format!("{}.{key}", place.table());
            let path = path.trim_start_matches('.');
            let forms =
                [format!("{key} = {{ {UNKNOWN} = 1 }}"), format!("{key} = [{{ {UNKNOWN} = 1 }}]")];
            let within = [format!("{key}."), format!("{key}[1].")];
            let takes_a_table = forms.iter().any(|form| {
                let said = place.with(form).err().unwrap_or_default();
                let mut unknown =
                    said.lines().filter(|line| line.contains(UNKNOWN) || line.contains("missing"));
                unknown.any(|line| within.iter().any(|within| line.contains(within.as_str())))
            });
            let known = TABLES.iter().any(|table| table.path == as_told(path));
            assert!(
                known || !takes_a_table,
                "{path} is a table, and the reference has no keys of it"
            );
        }
    }
}

#[test]
fn every_type_in_the_reference_is_one_that_the_parser_asks_for() {
    // What the parser says to a date, which is right nowhere, and the words of the reference.
    let words = [
        ("text in quotes", "text"),
        ("a whole number", "number"),
        ("a number belongs", "number"),
        ("true or false", "true/false"),
        ("a time", "time"),
        ("text in quotes", "share"),
        ("a table", "table"),
        ("an array", "array"),
    ];
    let mut wrong = String::new();
    for place in PLACES {
        for key in place.keys() {
            let asked = place.says(key, "1979-05-27");
            let found = is_there(&asked)
                || asked.iter().any(|said| {
                    said.contains("ICMP has no ports")
                        || said.lines().filter(|line| line.contains("belongs")).any(|line| {
                            words
                                .iter()
                                .any(|(it, word)| line.contains(it) && key.kind.contains(word))
                        })
                });
            if !found {
                wrong += &format!("{}.{} is {}: {asked:?}\n", place.path, key.name, key.kind);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Values just out of a range, of which the parser must say so.
fn outside(range: Range) -> Vec<String> {
    let second = Duration::from_secs(1);
    match range {
        Range::Any => Vec::new(),
        Range::Numbers(low, high) => vec![(low - 1).to_string(), (high + 1).to_string()],
        Range::Times(low, high) => {
            let below = match low {
                Duration::ZERO => None,
                low if low < second => Some(low - Duration::from_millis(1)),
                low => Some(low - second),
            };
            let times = below.into_iter().chain([high + second]);
            times.map(|time| format!("{:?}", duration::show(time))).collect()
        }
        Range::Shares(low, high) => {
            let shares = low.checked_sub(1).into_iter().chain([high + 1]);
            shares.map(|share| format!("{:?}", share::show(share))).collect()
        }
        Range::Words(_) => vec!["\"no such word at all\"".to_owned()],
    }
}

#[test]
fn every_range_in_the_reference_is_the_one_that_the_parser_goes_by() {
    let (mut asked, mut wrong) = (0, String::new());
    for place in PLACES {
        for key in place.keys() {
            for value in outside(key.range) {
                // Where items of an array are meant, the array holds one.
                let value =
                    if key.kind.starts_with("array") { format!("[{value}]") } else { value };
                let said = place.says(key, &value);
                let words = match key.range {
                    Range::Words(words) => words().join(", "),
                    _ => String::new(),
                };
                let is_refused = said.iter().any(|said| {
                    (said.contains("out of range") || !words.is_empty() && said.contains(&words))
                        && said.contains(key.name)
                        || said.contains("ICMP has no ports")
                });
                asked += 1;
                if !is_refused && !is_there(&said) {
                    wrong += &format!("{}.{} = {value}: {said:?}\n", place.path, key.name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(asked > 200, "only {asked} values were tried");
}

#[test]
fn every_default_in_the_reference_means_what_its_absence_means() {
    let (mut compared, mut wrong) = (0, String::new());
    // What a file says of a setting is kept beside its value: `right` holds those. A service's
    // own timeouts have those above them for defaults.
    let elsewhere = ["settings", "service.timeouts"];
    for place in PLACES.iter().filter(|place| !elsewhere.contains(&place.path)) {
        for key in place.keys() {
            let added = format!("{} = {}", key.name, key.default.trim_matches('`'));
            if toml::from_str::<toml::Table>(&added).is_err() {
                continue;
            }
            let pairs = place.alike().map(|place| (place.with(&added), place.with("")));
            let pairs: Vec<_> = pairs.collect();
            compared += 1;
            if !pairs.iter().any(|(with, without)| with.is_ok() && with == without) {
                wrong += &format!("{}: {added}: {:?}\n", place.path, pairs[0]);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared > 60, "only {compared} defaults could be compared");
}
