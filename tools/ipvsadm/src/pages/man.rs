//! The manual page.

use super::names;
use crate::flags::{Argument, Flag, GROUPS};

/// Section 8, in the words of `man(7)`.
pub(super) fn page() -> String {
    let mut text = String::from(HEAD);
    for group in GROUPS {
        text.push_str(&format!(".SS {}\n", escaped(group.title)));
        for flag in group.flags {
            text.push_str(&entry(flag));
        }
    }
    text.push_str(TAIL);
    text
}

fn entry(flag: &Flag) -> String {
    let names: Vec<String> =
        names(flag).iter().map(|name| format!("\\fB{}\\fR", escaped(name))).collect();
    let value = match flag.argument {
        Argument::None => String::new(),
        Argument::Required(name) | Argument::Words(name) => {
            format!(" \\fI{}\\fR", escaped(name))
        }
        Argument::Optional(name) => format!(" [\\fI{}\\fR]", escaped(name)),
    };
    format!(".TP\n{}{value}\n{}\n", names.join(", "), escaped(flag.about))
}

/// Dashes that are typed, and no line that begins as a request of its own does.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

const HEAD: &str = "\
.TH IPVSADM 8 \"\" Switchyard \"System administration\"
.SH NAME
ipvsadm \\- list and change the virtual services of the Switchyard director
.SH SYNOPSIS
.nf
\\fBipvsadm \\-A\\fR|\\fB\\-E\\fR \\fIservice\\fR [\\fIoptions\\fR]
\\fBipvsadm \\-D \\fIservice\\fR
\\fBipvsadm \\-C\\fR
\\fBipvsadm \\-R\\fR [\\fB\\-\\-atomic\\fR]
\\fBipvsadm \\-S\\fR [\\fB\\-n\\fR] [\\fB\\-\\-full\\fR]
\\fBipvsadm \\-a\\fR|\\fB\\-e\\fR \\fIservice\\fR \\fB\\-r\\fR \\fIserver\\fR [\\fIoptions\\fR]
\\fBipvsadm \\-d\\fR \\fIservice\\fR \\fB\\-r\\fR \\fIserver\\fR
\\fBipvsadm \\-L\\fR [\\fIservice\\fR | \\fB\\-c\\fR | \\fB\\-\\-timeout\\fR | \\fB\\-\\-daemon\\fR] [\\fIoptions\\fR]
\\fBipvsadm \\-Z\\fR [\\fIservice\\fR]
\\fBipvsadm \\-\\-set\\fR \\fItcp tcpfin udp\\fR
.fi
.SH DESCRIPTION
Takes the words of ipvsadm 1.31 and answers as that does; the table is not the kernel's but the director's.
The command comes first, options behind it in any order. Without a command the table is listed.
.SH OPTIONS
";

const TAIL: &str = "\
.SH ENVIRONMENT
.TP
\\fBSWITCHYARD_SOCKET\\fR
The director's control socket, in place of /run/director/control.sock.
.SH EXIT STATUS
0; 2 for a usage error, or when there is no director; 255 for an unknown option, no command, or a change that was
refused; 1 for a listing that was.
.SH EXAMPLES
.nf
ipvsadm \\-A \\-t 192.0.2.10:80 \\-s wlc
ipvsadm \\-a \\-t 192.0.2.10:80 \\-r 10.0.0.11 \\-g \\-w 100
ipvsadm \\-L \\-n \\-\\-stats
ipvsadm \\-L \\-n \\-c \\-\\-client 198.51.100.0/24
ipvsadm \\-S \\-\\-full > rules; (echo \\-C; cat rules) | ipvsadm \\-R \\-\\-atomic
.fi
.SH SEE ALSO
docs/ipvsadm.md of Switchyard: what differs from ipvsadm on the kernel, and why.
";
