//! A record plugin that misbehaves as its settings say, `{"mode": "trap-on-poison"}`. It is written against the bare
//! contract, since the SDK would not let it answer nonsense. A record is poisonous when its value holds the text `poison`.

#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;

use exports::tidegate::plugin::lifecycle::{self, About, Link, Problem};
use exports::tidegate::plugin::records::{self, Batch, Edits, Needed, Parts};

mod bindings {
    wit_bindgen::generate!({ path: "../../../plugin-sdk/wit/0.1.0", world: "record-transform", generate_all });
}
use bindings::exports;

/// No offset and no length of anything.
const NOWHERE: u32 = 4_000_000_000;

const DROP: u32 = 0;
const REJECT: u32 = 1;
const SET_HEADER: u32 = 2;
const SET_VALUE: u32 = 7;
const SPLICE_VALUE: u32 = 9;

struct Rogue;

thread_local! {
    static MODE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl lifecycle::Guest for Rogue {
    fn describe() -> About {
        About { name: "rogue".to_owned(), version: "0.1.0".to_owned(), config_schema: None }
    }

    fn init(_link: Link, config: String) -> Result<(), Vec<Problem>> {
        let mode = config.split('"').nth(3).unwrap_or_default().to_owned();
        match mode.as_str() {
            "fail-init" => {
                return Err(vec![Problem { at: "/mode".to_owned(), message: "asked to fail".to_owned() }]);
            }
            "trap-in-init" => core::arch::wasm32::unreachable(),
            _ => {}
        }
        MODE.set(mode);
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        if mode() == "fail-self-test" { Err("asked to fail".to_owned()) } else { Ok(()) }
    }
}

fn mode() -> String {
    MODE.with_borrow(Clone::clone)
}

impl records::Guest for Rogue {
    fn needs() -> Needed {
        Needed { parts: Parts::VALUE, header_names: Vec::new() }
    }

    fn process(batch: Batch) -> Result<Edits, String> {
        let poisonous = poisonous(&batch);
        let first = poisonous.first().copied();
        match (mode().as_str(), first) {
            ("trap-always", _) | ("trap-on-poison", Some(_)) => core::arch::wasm32::unreachable(),
            ("loop-always", _) | ("loop-on-poison", Some(_)) => loop {
                core::hint::black_box(0);
            },
            ("eat-always", _) | ("eat-on-poison", Some(_)) => eat(),
            ("error-always", _) => Err("not today,\nnever".to_owned()),
            ("drop-poison", _) => Ok(each(&poisonous, DROP, "")),
            ("reject-poison", _) => Ok(each(&poisonous, REJECT, "it is poisonous")),
            ("record-out-of-range", Some(_)) => Ok(words(&[batch.count, DROP, 0, 0, 0, 0])),
            ("unknown-code", Some(record)) => Ok(words(&[record, 99, 0, 0, 0, 0])),
            ("half-an-edit", Some(record)) => Ok(words(&[record, DROP, 0])),
            ("span-outside", Some(record)) => Ok(words(&[record, SET_VALUE, NOWHERE, NOWHERE, 0, 0])),
            ("splice-outside", Some(record)) => Ok(words(&[record, SPLICE_VALUE, NOWHERE, 1, 0, 0])),
            ("falling-order", Some(_)) => Ok(words(&[1, DROP, 0, 0, 0, 0, 0, DROP, 0, 0, 0, 0])),
            ("name-of-no-text", Some(record)) => {
                Ok(Edits { data: vec![0xff, 0xfe], ops: vec![record, SET_HEADER, 0, 2, 0, 0] })
            }
            ("too-many-edits", Some(_)) => Ok(words(&[0, DROP, 0, 0, 0, 0].repeat(2_000_000))),
            ("too-large-a-value", Some(record)) => {
                let length = 40 * 1024 * 1024;
                Ok(Edits { data: vec![b'x'; length as usize], ops: vec![record, SET_VALUE, 0, length, 0, 0] })
            }
            _ => Ok(words(&[])),
        }
    }
}

fn words(words: &[u32]) -> Edits {
    Edits { data: Vec::new(), ops: words.to_vec() }
}

fn each(records: &[u32], code: u32, text: &str) -> Edits {
    let length = text.len() as u32;
    let ops = records.iter().flat_map(|record| [*record, code, 0, length, 0, 0]).collect();
    Edits { data: text.as_bytes().to_vec(), ops }
}

fn poisonous(batch: &Batch) -> Vec<u32> {
    let is_poisonous = |record: &u32| {
        let words = &batch.recs[(record * batch.rec_words) as usize..];
        let (offset, length) = (words[4] as usize, words[5]);
        length != u32::MAX
            && batch.data[offset..offset + length as usize].windows(6).any(|part| part == b"poison")
    };
    (0..batch.count).filter(is_poisonous).collect()
}

/// Wants memory until there is none.
fn eat() -> ! {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![1; 1 << 20]);
        core::hint::black_box(&eaten);
    }
}

bindings::export!(Rogue with_types_in bindings);
