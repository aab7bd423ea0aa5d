//! Where a flow's progress is written down, byte for byte as MirrorMaker 2 writes it, so that each can take over from
//! the other: keys, values, and the partition that a key lies in. Beside it, what a record in quarantine carries with it. Pure;
//! reading and writing the topics is not here.

mod json_text;
mod murmur2;
mod position;
pub mod quarantine;

pub use murmur2::{murmur2, slot_of};
pub use position::{
    BadPosition, StoredPosition, parse_position_key, parse_position_value, position_key, position_value,
};
