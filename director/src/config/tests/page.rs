//! `docs/configuration.md` beside the parser: the parser is asked which keys it knows, of which type, and
//! whether a default means what its absence means. Tables that it takes anywhere are found by asking, so
//! that a key cannot be left undocumented.

use std::collections::BTreeSet;

use super::parse;
use crate::config::Config;

const PAGE: &str = include_str!("../../../../docs/configuration.md");

/// A key that nothing has.
const UNKNOWN: &str = "no_such_key_at_all";

/// Where keys can stand, and which table of the page has them.
struct Place {
    /// Path of the table within the file: `service.persistence`. One that ends with `:KIND` is for
    /// rows that are `of` that kind.
    path: &'static str,
    /// Number of the page's table of keys, from 0, in the order of the page.
    tables: &'static [usize],
    /// A right file; `@` is where a key of the table can be added, followed by its value.
    file: &'static str,
}

const fn place(path: &'static str, tables: &'static [usize], file: &'static str) -> Place {
    Place { path, tables, file }
}

const SERVICE: &str = "\nforwarding = \"nat\"\nserver = [{ address = \"10.0.0.1\" }]\n";

const TCP: &str = "[[service]]\nlisten = \"192.0.2.1:80/tcp\"\n";

/// All places. Those of `[agent]` that have no table of their own stand in its table's rows.
const PLACES: &[Place] = &[
    place("", &[0], "@\n"),
    place("timeouts", &[1], "timeouts = { @ }\n"),
    place("settings", &[2], "[settings]\n@\n"),
    place("service", &[3], "TCP@\nSERVICE"),
    place("service", &[3], "[[service]]\nfwmark = 1\n@\nSERVICE"),
    place(
        "service",
        &[3],
        "[[service]]\nlisten = \"192.0.2.1:80/udp\"\n@\nforwarding = \"direct\"\nserver = [{ address = \"10.0.0.1\" }]\n",
    ),
    place("service.timeouts", &[1], "TCPtimeouts = { @ }\nSERVICE"),
    place("service.scheduler", &[4], "TCPscheduler = { name = \"dht\", @ }\nSERVICE"),
    place("service.persistence", &[5], "TCPpersistence = { @ }\nSERVICE"),
    place("service.check:tcp", &[6, 7], "TCPcheck = { type = \"tcp\", @ }\nSERVICE"),
    place("service.check:icmp", &[6, 7], "TCPcheck = { type = \"icmp\", @ }\nSERVICE"),
    place("service.check:http", &[6, 7], "TCPcheck = { type = \"http\", @ }\nSERVICE"),
    place("service.check:https", &[6, 7], "TCPcheck = { type = \"https\", @ }\nSERVICE"),
    place("service.check:dns", &[6, 7], "TCPcheck = { type = \"dns\", @ }\nSERVICE"),
    place("service.check:udp", &[6, 7], "TCPcheck = { type = \"udp\", @ }\nSERVICE"),
    place(
        "service.check:exec",
        &[6, 7],
        "TCPcheck = { type = \"exec\", command = [\"/bin/true\"], @ }\nSERVICE",
    ),
    place(
        "service.check:agent-check",
        &[6, 7],
        "TCPcheck = { type = \"agent-check\", port = 1, @ }\nSERVICE",
    ),
    place("service.agent", &[8], "TCPagent = { @ }\nSERVICE"),
    place(
        "service.fallback",
        &[9],
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", @ }\nSERVICE",
    ),
    place(
        "service.feedback",
        &[10],
        "TCPagent = true\nfeedback = { @ }\nforwarding = \"nat\"\nserver = [{ address = \"10.0.0.1\", weight = 100 }]\n",
    ),
    place("health", &[11], "[health]\n@\n"),
    place("agent", &[12], "[agent]\n@\n"),
    place("mark", &[13], "[[mark]]\nmark = 1\nsource = \"10.0.0.0/8\"\n@\n"),
    place(
        "service.server",
        &[14],
        "TCPforwarding = \"nat\"\n[[service.server]]\naddress = \"10.0.0.1\"\n@\n",
    ),
    place(
        "service.server.tunnel",
        &[15],
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\ntunnel = { type = \"gre\", @ }\n",
    ),
    place(
        "service.fallback.tunnel",
        &[15],
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", tunnel = { type = \"gre\", @ } }\nSERVICE",
    ),
    place(
        "service.fallback",
        &[9],
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", @ }\nSERVICE",
    ),
    place(
        "service.server",
        &[14],
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\n@\n",
    ),
    place(
        "service.server.tunnel",
        &[15],
        "TCPforwarding = \"tunnel\"\n[[service.server]]\naddress = \"10.0.0.1\"\ntunnel = { type = \"gue\", @ }\n",
    ),
    place(
        "service.fallback.tunnel",
        &[15],
        "TCPall_down = \"fallback\"\ncheck = \"tcp\"\nfallback = { address = \"10.0.0.9\", forwarding = \"tunnel\", tunnel = { type = \"gue\", @ } }\nSERVICE",
    ),
    place(
        "nlb.rule",
        &[17],
        "[nlb]\nhosts = [\"10.0.0.1\"]\n[[nlb.rule]]\nports = 80\nfilter = \"single\"\n@\n",
    ),
    place("nlb", &[16], "[nlb]\n@\n"),
    place("nlb.rule", &[17], "[[nlb.rule]]\nports = 80\n@\n"),
];

/// Tables within `[agent]`, whose keys stand in the rows of their own.
const IN_A_ROW: [(&str, &str); 5] = [
    ("agent.load", "[agent]\nload = { @ }\n"),
    ("agent.full", "[agent]\nfull = { @ }\n"),
    ("agent.check", "[agent]\ncheck = { type = \"tcp\", @ }\n"),
    ("agent.check", "[agent]\ncheck = { type = \"http\", @ }\n"),
    ("agent.check", "[agent]\ncheck = { type = \"exec\", @ }\n"),
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

    fn rows(&self) -> Vec<Row> {
        let all = tables();
        let rows = self.tables.iter().flat_map(|&number| all[number].clone());
        let kind = self.kind();
        rows.filter(|row| row.of.is_empty() || kind.is_some_and(|kind| row.of.contains(&kind)))
            .collect()
    }
}

/// A line of a table of keys.
#[derive(Clone, Debug)]
struct Row {
    key: &'static str,
    /// Kinds of check that have it; none for all.
    of: Vec<&'static str>,
    kind: Option<&'static str>,
    default: &'static str,
}

/// The tables of the page whose first column is `key`.
fn tables() -> Vec<Vec<Row>> {
    let cells = |line: &'static str| -> Vec<&'static str> {
        line.trim().trim_matches('|').split('|').map(str::trim).collect()
    };
    let mut tables = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("| key |") {
            continue;
        }
        let head = cells(line);
        let column = |name| head.iter().position(|cell| *cell == name);
        let (of, kind, default) = (column("of"), column("type"), column("default"));
        let rows = lines.by_ref().skip(1).take_while(|line| line.starts_with('|'));
        let rows = rows.map(|line| {
            let cells = cells(line);
            Row {
                key: cells[0].trim_matches('`'),
                of: of.map_or_else(Vec::new, |at| cells[at].split(", ").collect()),
                kind: kind.map(|at| cells[at]),
                default: cells[default.expect("every table tells defaults")],
            }
        });
        tables.push(rows.collect());
    }
    tables
}

#[test]
fn every_key_that_the_parser_takes_is_documented_and_no_other() {
    for place in PLACES {
        let rows: BTreeSet<String> = place.rows().iter().map(|row| row.key.to_owned()).collect();
        assert_eq!(rows, place.known(), "keys of {} on the page, and known", place.path);
    }
    let used: BTreeSet<usize> = PLACES.iter().flat_map(|place| place.tables).copied().collect();
    assert_eq!(used.len(), tables().len(), "a table of keys that belongs to nothing");
}

#[test]
fn every_table_that_the_parser_takes_has_its_keys_documented() {
    for place in PLACES {
        for key in place.known() {
            let path = format!("{}.{key}", place.table());
            let path = path.trim_start_matches('.');
            let forms =
                [format!("{key} = {{ {UNKNOWN} = 1 }}"), format!("{key} = [{{ {UNKNOWN} = 1 }}]")];
            let within = [format!("{key}."), format!("{key}[1].")];
            let takes_a_table = forms.iter().any(|form| {
                let said = place.with(form).err().unwrap_or_default();
                let unknown =
                    said.lines().filter(|line| line.contains(UNKNOWN) || line.contains("missing"));
                unknown
                    .into_iter()
                    .any(|line| within.iter().any(|within| line.contains(within.as_str())))
            });
            let known = PLACES.iter().any(|it| it.table() == path);
            if takes_a_table && !IN_A_ROW.iter().any(|(row, _)| *row == path) {
                assert!(known, "{path} is a table, and its keys are not held to the page");
            }
        }
    }
}

#[test]
fn the_keys_of_small_tables_stand_in_the_row_of_their_table() {
    for (path, file) in IN_A_ROW {
        let key = path.rsplit('.').next().unwrap_or_default();
        let mut row = PAGE.lines().filter(|line| line.starts_with(&format!("| `{key}` |")));
        // The agent's own table comes after that of services.
        let rows = row.next_back().unwrap_or_default();
        for known in place(path, &[], file).known() {
            assert!(
                rows.contains(&format!("`{known}`")) || rows.contains(&format!("{known} =")),
                "{path}.{known}: {rows}"
            );
        }
    }
}

#[test]
fn every_type_on_the_page_is_one_that_the_parser_asks_for() {
    // What the parser says to a date, which is right nowhere, and the words of the page.
    let words = [
        ("text in quotes", "text"),
        ("a whole number", "number"),
        ("true or false", "true/false"),
        ("a time", "time"),
        ("text in quotes", "share"),
        ("a table", "table"),
        ("an array", "array"),
    ];
    let mut wrong = String::new();
    for place in PLACES {
        for row in place.rows() {
            let Some(kind) = row.kind else { continue };
            let asked = place.alike().map(|place| {
                let said = place.with(&format!("{} = 1979-05-27", row.key)).unwrap_err();
                said.lines().find(|line| line.contains("stands where")).unwrap_or(&said).to_owned()
            });
            let asked: Vec<String> = asked.collect();
            let found = asked.iter().any(|said| {
                // It stands in the file already, with a value that is right.
                said.contains("duplicate key")
                    || said.contains("ICMP has no ports")
                    || words.iter().any(|(asked, word)| said.contains(asked) && kind.contains(word))
            });
            if !found {
                wrong += &format!("{}.{} is {kind}: {asked:?}\n", place.path, row.key);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_default_on_the_page_means_what_its_absence_means() {
    let (mut compared, mut wrong) = (0, String::new());
    // What a file says of a setting is kept beside its value: `right` holds those to the page. A service's
    // own timeouts have those above them for defaults.
    let elsewhere = ["settings", "service.timeouts"];
    for place in PLACES.iter().filter(|place| !elsewhere.contains(&place.path)) {
        for row in place.rows() {
            let added = format!("{} = {}", row.key, row.default.trim_matches('`'));
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
