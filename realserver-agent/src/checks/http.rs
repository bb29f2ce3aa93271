//! An HTTP request, as much of it as a check needs: the status of the answer.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest status line that is read, in bytes.
const LONGEST: u64 = 1024;

/// Asks for `path`, and gives the status. The connection is closed after that, whatever else comes.
///
/// # Errors
/// When there is no answer, or it is no HTTP/1.
pub(super) async fn status(to: SocketAddr, path: &str, host: Option<&str>) -> Result<u16> {
    let mut stream = TcpStream::connect(to).await?;
    let address = to.to_string();
    let host = host.unwrap_or(&address);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: realserver-agent\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = stream.take(LONGEST);
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        if answer.read_buf(&mut line).await? == 0 {
            break;
        }
    }
    parse(&line).ok_or_else(|| Error::new(ErrorKind::InvalidData, "the answer is not HTTP/1"))
}

/// `HTTP/1.1 200 OK`
fn parse(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace);
    words.next()?.strip_prefix(b"HTTP/1.")?;
    let code = words.next().filter(|code| code.len() == 3)?;
    let code = std::str::from_utf8(code).ok()?.parse().ok()?;
    (100..=599).contains(&code).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_status_is_read_and_what_is_not_http_is_refused() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nX: y\r\n"), Some(200));
        assert_eq!(parse(b"HTTP/1.0 503\n"), Some(503));
        for answer in ["", "HTTP/1.1", "HTTP/1.1 2000", "HTTP/1.1 +20 x", "SSH-2.0-x", "HTTP/2 200"]
        {
            assert_eq!(parse(answer.as_bytes()), None, "{answer}");
        }
        assert_eq!(parse(&[0xff; 1024]), None);
    }
}
