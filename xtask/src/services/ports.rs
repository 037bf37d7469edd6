//! Free loopback ports, held so that two commands never choose the same one.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

use crate::checkout::Checkout;

/// Below the range from which systems take the ports of outgoing connections (32768 and up on Linux).
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of 127.0.0.1 that no other xtask uses while this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _held: File,
}

impl Port {
    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Takes a free port.
///
/// # Errors
/// When the cache folder can't be written or no port is free.
pub(crate) fn free(checkout: &Checkout) -> Result<Port> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let folder = checkout.cache("ports");
    fs::create_dir_all(&folder)?;
    for _ in 0..COUNT {
        // Each process begins somewhere else, so that logs of two runs rarely name the same port.
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed)) + process::id().wrapping_mul(97);
        let number = FIRST + u16::try_from(step % u32::from(COUNT))?;
        let held = File::create(folder.join(number.to_string()))?;
        if held.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
            return Ok(Port { number, _held: held });
        }
    }
    bail!("no free port on 127.0.0.1 from {FIRST} to {}", FIRST + COUNT - 1)
}
