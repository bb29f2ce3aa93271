//! What is said on FTP's control connections, each case on one of its own.
//!
//! Data connections have ports of their own in every case, so that none is taken for another's.

use super::ftp::Talk;

/// What happens on a control connection once it is established.
pub(super) type Case = fn(&mut Talk);

/// Over IPv4: the virtual address is 203.0.113.200, the server 10.77.0.11, the client 198.18.21.1.
/// A reply grows by three bytes.
pub(super) const V4: &[Case] = &[
    // A session in passive mode.
    |talk| {
        talk.answers("220 ready\r\n", 0);
        talk.says("USER anonymous\r\n");
        talk.answers("230 go ahead\r\n", 0);
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n", 3);
        talk.passive(40000, 50000);
        talk.says("LIST\r\n");
        talk.answers("150 here it comes\r\n", 0);
        talk.answers("226 done\r\n", 0);
        talk.says("QUIT\r\n");
        talk.answers("221 bye\r\n", 0);
        talk.ends();
    },
    // A session in active mode.
    |talk| {
        talk.says("PORT 198,18,21,1,160,1\r\n");
        talk.answers("200 fine\r\n", 0);
        talk.says("LIST\r\n");
        talk.active(40961);
        talk.answers("226 done\r\n", 0);
    },
    // One reply after the other, longer, shorter, equal.
    |talk| {
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,81)\r\n", 3);
        talk.says("NOOP\r\n");
        talk.answers("200 fine\r\n", 0);
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (010,077,000,011,195,082)\r\n", -3);
        talk.says("NOOP\r\n");
        talk.answers("200 fine\r\n", 0);
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (010,077,0,011,195,83)\r\n", 0);
        talk.passive(40001, 50002);
    },
    // Without parentheses, in lower case, among other words.
    |talk| {
        talk.says("pasv\r\n");
        talk.answers("227 =10,77,0,11,195,90\r\n", 3);
        talk.passive(40002, 50010);
        talk.says("NOOP\r\nPaSv\r\n");
        talk.answers("227 ((10,77,0,11,195,91)\r\n", 3);
        talk.says("port 198,18,21,1,160,2\r\n");
        talk.active(40962);
    },
    // The extended commands.
    |talk| {
        talk.says("EPSV\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50020|)\r\n", 0);
        talk.passive(40003, 50020);
        talk.says("EPSV 1\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50021|)\r\n", 0);
        talk.says("EPSV 2\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50022|)\r\n", 0);
        talk.says("EPSV ALL\r\n");
        talk.answers("200 all of them\r\n", 0);
        talk.says("EPRT |1|198.18.21.1|40963|\r\n");
        talk.active(40963);
        talk.says("EPRT !1!198.18.21.1!40964!\r\n");
        talk.active(40964);
        talk.says("EPRT |2|2001:db8:2::21|40965|\r\n");
        talk.says("EPRT |1|198.18.21.1|0|\r\n");
        talk.says("EPRT |1|198.18.21|40966|\r\n");
        talk.says("EPRT ||198.18.21.1|40967|\r\n");
    },
    // What is no announcement.
    |talk| {
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,100).\r\n", 0);
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195).\r\n", 0);
        talk.answers("227 Entering Passive Mode.\r\n", 0);
        talk.answers("500 no\r\n", 0);
        talk.says("HELP\r\n");
        talk.answers("214-227 Entering Passive Mode (10,77,0,11,195,101).\r\n", 0);
        talk.says("PORT 198,18,21,1,160\r\n");
        talk.says("PORT\r\n");
        talk.says("XPORT 198,18,21,1,160,3\r\n");
        talk.says("EPORT |1|198.18.21.1|40968|\r\n");
    },
    // Addresses of others, and ports that are not for everybody.
    |talk| {
        talk.says("PORT 198,18,99,99,160,4\r\n");
        talk.says("PORT 198,18,21,1,0,25\r\n");
        talk.says("EPRT |1|10.77.0.12|25|\r\n");
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,12,195,110)\r\n", 3);
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,0,80)\r\n", 3);
    },
    // Cut over two segments.
    |talk| {
        talk.says("PORT 198,18,21,1,");
        talk.says("160,5\r\n");
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,", 0);
        talk.answers("11,195,120)\r\n", 0);
        talk.says("PA");
        talk.says("SV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,121)\r\n", 3);
    },
    // Another command in between: active mode ends the wait for a passive reply.
    |talk| {
        talk.says("PASV\r\n");
        talk.says("PORT 198,18,21,1,160,6\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,130)\r\n", 0);
    },
    // The end, and what is said after it.
    |talk| {
        talk.says("PASV\r\n");
        talk.ends();
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,140)\r\n", 0);
    },
];

/// Over IPv6: the virtual address is 2001:db8:5::2121, the client 2001:db8:2::21.
pub(super) const V6: &[Case] = &[
    |talk| {
        talk.says("EPSV\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50000|)\r\n", 0);
        talk.passive(40000, 50000);
        talk.says("EPSV 2\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50001|)\r\n", 0);
        talk.passive(40001, 50001);
        talk.says("EPSV 1\r\n");
        talk.answers("229 Entering Extended Passive Mode (|||50002|)\r\n", 0);
        talk.says("epsv\r\n");
        talk.answers("229 (|||50003|)\r\n", 0);
    },
    |talk| {
        talk.says("EPRT |2|2001:db8:2::21|40961|\r\n");
        talk.active(40961);
        talk.says("EPRT |2|2001:db8:2:0::0:21|40962|\r\n");
        talk.says("EPRT |1|198.18.21.1|40963|\r\n");
        talk.says("PORT 198,18,21,1,160,1\r\n");
    },
    |talk| {
        talk.says("PASV\r\n");
        talk.answers("227 Entering Passive Mode (10,77,0,11,195,80)\r\n", 0);
        talk.answers("229 Entering Extended Passive Mode (|||50010|)\r\n", 0);
    },
    |talk| {
        talk.says("EPSV\r\n");
        talk.ends();
        talk.answers("229 Entering Extended Passive Mode (|||50020|)\r\n", 0);
    },
];
