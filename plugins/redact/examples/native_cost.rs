//! What masking a field costs when the same code runs natively, with no host and no boundary: the yardstick for
//! `tidegate plugin bench builtin:redact`, over records like those of that command.
//! `cargo run --release --manifest-path plugins/redact/Cargo.toml --example native_cost`

use std::error::Error;
use std::hint::black_box;

use tidegate_json_fields::{Paths, Scanner};

const RECORD_COUNT: usize = 10_000;
const ROUND_COUNT: usize = 100;
const MEASUREMENT_COUNT: usize = 3;
const MASK: &[u8] = b"\"***\"";

fn main() -> Result<(), Box<dyn Error>> {
    let values: Vec<Vec<u8>> = (0..RECORD_COUNT).map(order).collect();
    let mut paths = Paths::new();
    paths.add("customer.email", false)?;
    let mut scanner = Scanner::default();
    let mut redacted = Vec::new();
    let mut least_ns = f64::MAX;
    for _ in 0..MEASUREMENT_COUNT {
        let begin_ns = thread_time_ns()?;
        for _ in 0..ROUND_COUNT {
            for value in &values {
                mask(&mut scanner, &paths, value, &mut redacted)?;
                black_box(&redacted);
            }
        }
        let took_ns = thread_time_ns()? - begin_ns;
        least_ns = least_ns.min(took_ns as f64 / (RECORD_COUNT * ROUND_COUNT) as f64);
    }
    println!("{least_ns:.0} ns a record of processor time, the least of {MEASUREMENT_COUNT} measurements");
    Ok(())
}

/// Finds the fields and writes the value anew, around what is masked.
fn mask(
    scanner: &mut Scanner,
    paths: &Paths,
    value: &[u8],
    redacted: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    redacted.clear();
    let mut copied = 0;
    let found = scanner.scan(paths, value).map_err(|unreadable| format!("{unreadable:?}"))?;
    for field in found {
        redacted.extend_from_slice(value.get(copied..field.cut.start).ok_or("fields overlap")?);
        redacted.extend_from_slice(MASK);
        copied = field.cut.end;
    }
    redacted.extend_from_slice(value.get(copied..).ok_or("a field ends behind the value")?);
    Ok(())
}

/// First field: nanoseconds on a processor.
fn thread_time_ns() -> Result<u64, Box<dyn Error>> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(figures.split(' ').next().unwrap_or_default().parse()?)
}

fn order(order: usize) -> Vec<u8> {
    let region = ["eu", "us", "ap", "eu"][order % 4];
    let text = format!(
        "{{\"id\":{order},\"customer\":{{\"name\":\"Customer {}\",\"email\":\"customer{}@example.org\",\
         \"city\":\"Springfield\"}},\"region\":\"{region}\",\"amount\":{}.50,\"items\":[{{\"sku\":\"A-{}\",\
         \"count\":{}}},{{\"sku\":\"B-{}\",\"count\":1}}],\"note\":\"please leave it at the door\"}}",
        order % 997,
        order % 997,
        order % 89,
        order % 13,
        order % 5 + 1,
        order % 17,
    );
    text.into_bytes()
}
