//! A producer that writes numbered records at a steady rate in the background until it is told to stop.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::Servers;
use crate::producer::{ProducerOptions, Writer};
use crate::record::Numbered;

/// How the load runs.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Which records.
    pub records: Numbered,
    /// The first number.
    pub first_number: u64,
    /// How many a second.
    pub records_per_second: u64,
    /// How they are written.
    pub producer: ProducerOptions,
}

/// A running load. Dropping it stops it.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    sent_count: Arc<AtomicU64>,
    first_number: u64,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Load {
    /// Begins to write.
    ///
    /// # Errors
    /// When the producer can't be made.
    pub fn start(cluster: &dyn Servers, topic: &str, options: LoadOptions) -> anyhow::Result<Load> {
        let writer = Writer::new(cluster, topic, &options.producer)?;
        let stop = Arc::new(AtomicBool::new(false));
        let sent_count = Arc::new(AtomicU64::new(0));
        let first_number = options.first_number;
        let thread = {
            let (stop, sent_count) = (Arc::clone(&stop), Arc::clone(&sent_count));
            std::thread::spawn(move || write(writer, &options, &stop, &sent_count))
        };
        Ok(Load { stop, sent_count, first_number, thread: Some(thread) })
    }

    /// How many records were handed to the producer so far.
    pub fn sent_count(&self) -> u64 {
        self.sent_count.load(Ordering::Relaxed)
    }

    /// Stops, waits until everything is acknowledged, and gives the numbers that were written.
    ///
    /// # Errors
    /// When a record was not acknowledged.
    pub async fn stop(mut self) -> anyhow::Result<Range<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the load runs")?;
        tokio::task::spawn_blocking(move || thread.join().map_err(|_| anyhow!("the load panicked"))?)
            .await??;
        Ok(self.first_number..self.first_number + self.sent_count())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn write(
    mut writer: Writer,
    options: &LoadOptions,
    stop: &AtomicBool,
    sent_count: &AtomicU64,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let pause = Duration::from_secs(1) / u32::try_from(options.records_per_second.min(200)).unwrap_or(200);
    while !stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * options.records_per_second as f64) as u64;
        for step in sent_count.load(Ordering::Relaxed)..due {
            let number = options.first_number + step;
            writer.send(options.records.partition(number), &options.records.content(number))?;
            sent_count.store(step + 1, Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        std::thread::sleep(pause);
    }
    writer.finish()
}
