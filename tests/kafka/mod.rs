//! Real brokers. Each file is one promise, or one trouble in which the promises hold.

mod witness;

mod append_time;
mod codecs;
mod compaction;
mod growth;
mod large_records;
mod names;
mod plugins;
mod policies;
mod transactions;
mod whole_copy;

mod broker_restart;
mod hand_over;
mod kill;
mod second_process;
mod start;
mod stop;
