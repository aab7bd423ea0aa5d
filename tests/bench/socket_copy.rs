//! The floor: the same number of bytes read from one loopback socket and written to another, by nothing but two system
//! calls. No replicator that moves bytes through user space needs less.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

const BUFFER_BYTES: usize = 262_144;

/// What the copying thread needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketCopy {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Copies so many bytes. Sender and receiver are threads of their own and not counted.
pub(crate) fn measure(bytes: u64) -> anyhow::Result<SocketCopy> {
    let (mut sender, mut input) = connected()?;
    let (mut output, mut receiver) = connected()?;
    let send = thread::spawn(move || send(&mut sender, bytes));
    let receive = thread::spawn(move || receive(&mut receiver));
    let copy = thread::spawn(move || copy(&mut input, &mut output));
    let joined = (send.join(), receive.join(), copy.join());
    let (Ok(sent), Ok(received), Ok(copied)) = joined else { anyhow::bail!("a copying thread panicked") };
    sent?;
    anyhow::ensure!(received? == bytes, "bytes were lost between two sockets");
    copied
}

fn connected() -> anyhow::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    Ok((client, listener.accept()?.0))
}

fn send(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let buffer = vec![7; BUFFER_BYTES];
    let mut left = bytes;
    while left > 0 {
        let step = left.min(BUFFER_BYTES as u64) as usize;
        stream.write_all(&buffer[..step])?;
        left -= step as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

fn receive(stream: &mut TcpStream) -> std::io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            step => bytes += step as u64,
        }
    }
}

fn copy(input: &mut TcpStream, output: &mut TcpStream) -> anyhow::Result<SocketCopy> {
    let (start, cpu) = (Instant::now(), own_cpu()?);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            step => output.write_all(&buffer[..step])?,
        }
    }
    output.shutdown(std::net::Shutdown::Write)?;
    Ok(SocketCopy { cpu: own_cpu()? - cpu, wall: start.elapsed() })
}

/// Time that this thread was on a processor, in nanoseconds from the scheduler's own count.
fn own_cpu() -> anyhow::Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().context("an empty schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}
