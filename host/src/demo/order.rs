//! An order: invented, but the same ones in every demo.

use serde::Serialize;

/// What can be ordered, and its price in cents.
const ITEMS: [(&str, u32); 8] = [
    ("blue teapot", 3_490),
    ("reading lamp", 5_900),
    ("garden chair", 7_950),
    ("wool blanket", 4_200),
    ("bread knife", 1_875),
    ("wall clock", 2_640),
    ("tin of tea", 995),
    ("letter paper", 450),
];

/// Where orders come from.
const CHANNELS: [&str; 3] = ["shop", "phone", "web"];

const CUSTOMERS_COUNT: u64 = 5_000;
const PIECES_MAX: u64 = 4;

/// The value of a record, as JSON.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct Order {
    /// `o-` and its number; also the record's key.
    pub(super) order: String,
    pub(super) customer: String,
    pub(super) item: &'static str,
    pub(super) pieces: u64,
    /// In euros.
    pub(super) amount: f64,
    /// Goes into a header, not into the value.
    #[serde(skip)]
    pub(super) channel: &'static str,
}

impl Order {
    /// The order of this number.
    pub(super) fn numbered(number: u64) -> Self {
        let dice = scatter(number);
        let pick = |shift: u32, count: u64| (dice >> shift) % count;
        let (item, cents) = ITEMS[pick(0, ITEMS.len() as u64) as usize];
        let channel = CHANNELS[pick(8, CHANNELS.len() as u64) as usize];
        let pieces = 1 + pick(16, PIECES_MAX);
        let amount = (pieces * u64::from(cents)) as f64 / 100.0;
        Self {
            order: format!("o-{number:08}"),
            customer: format!("c-{:04}", pick(24, CUSTOMERS_COUNT)),
            item,
            pieces,
            amount,
            channel,
        }
    }

    /// The record's value.
    pub(super) fn json(&self) -> anyhow::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// Numbers that lie side by side get nothing alike (the finish of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_what_a_newcomer_can_read() {
        let order = Order {
            order: "o-00000007".into(),
            customer: "c-0421".into(),
            item: "blue teapot",
            pieces: 2,
            amount: 69.8,
            channel: "web",
        };
        assert_eq!(
            String::from_utf8(order.json().unwrap()).unwrap(),
            r#"{"order":"o-00000007","customer":"c-0421","item":"blue teapot","pieces":2,"amount":69.8}"#
        );
        assert_eq!(Order::numbered(7).order, "o-00000007");
    }

    #[test]
    fn orders_differ_and_are_the_same_each_time() {
        assert_eq!(Order::numbered(12), Order::numbered(12));
        let items: std::collections::BTreeSet<&str> =
            (0..100).map(|number| Order::numbered(number).item).collect();
        assert_eq!(items.len(), ITEMS.len());
    }
}
