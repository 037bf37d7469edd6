//! The few HTTP requests that xtask makes itself: is a service ready?

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;

/// Name and password for HTTP's basic authentication.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basic<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
}

/// The status of `GET path` on a loopback port.
///
/// # Errors
/// When nothing listens there, or what answers isn't HTTP.
pub(crate) fn status(port: u16, path: &str, basic: Option<Basic<'_>>) -> Result<u16> {
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let authorization = basic.map_or_else(String::new, |Basic { user, password }| {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        format!("Authorization: Basic {pair}\r\n")
    });
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{authorization}Connection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(1 << 16).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).context("not an HTTP answer")?;
    status.parse().context("not an HTTP status")
}
