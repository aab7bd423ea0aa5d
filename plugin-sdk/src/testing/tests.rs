use super::*;
use crate::records::{Edit, Record};

/// Does what a test says.
struct Scripted<F>(Needs, F);

impl<F: FnMut(&Record<'_>, &mut Edit<'_>) -> Result<(), String> + 'static> Plugin for Scripted<F> {
    fn init(_link: Link, _settings: &str) -> Result<Self, Vec<Problem>> {
        Err(vec![Problem::new("", "made by hand")])
    }
}

impl<F: FnMut(&Record<'_>, &mut Edit<'_>) -> Result<(), String> + 'static> Records for Scripted<F> {
    fn needs(&self) -> Needs {
        self.0.clone()
    }

    fn edit(&mut self, record: &Record<'_>, edit: &mut Edit<'_>) -> Result<(), String> {
        self.1(record, edit)
    }
}

fn batch() -> Batch {
    Batch::new("orders", 3)
        .base_offset(100)
        .record(|record| {
            record
                .key("k0")
                .value("value")
                .timestamp_ms(5)
                .header("region", "eu")
                .null_header("empty")
                .header("region", "us")
        })
        .record(|record| record.offset(107).key(""))
}

fn outcome(
    needs: Needs,
    edit: impl FnMut(&Record<'_>, &mut Edit<'_>) -> Result<(), String> + 'static,
) -> Outcome {
    run(&mut Scripted(needs, edit), &batch())
}

fn first(edit: impl Fn(&mut Edit<'_>) + 'static) -> Judged {
    outcome(Needs::all(), move |record, writer| {
        if record.offset() == 100 {
            edit(writer);
        }
        Ok(())
    })
    .records
    .remove(0)
}

#[test]
fn all_parts_are_seen() {
    outcome(Needs::all(), |record, _| {
        assert_eq!((record.topic(), record.partition()), ("orders", 3));
        if record.offset() == 100 {
            assert_eq!((record.key(), record.value()), (Some(&b"k0"[..]), Some(&b"value"[..])));
            assert_eq!((record.has_key(), record.is_tombstone()), (true, false));
            assert_eq!(record.timestamp_ms(), Some(5));
            assert_eq!(
                record.headers().collect::<Vec<_>>(),
                [("region", Some(&b"eu"[..])), ("empty", None), ("region", Some(b"us"))]
            );
            assert_eq!(record.header("region"), Some(&b"eu"[..]));
            assert_eq!(record.last_header("region"), Some(&b"us"[..]));
            assert_eq!((record.header("empty"), record.has_header("empty")), (None, true));
            assert_eq!((record.header("absent"), record.has_header("absent")), (None, false));
        } else {
            assert_eq!((record.offset(), record.timestamp_ms()), (107, None));
            assert_eq!((record.key(), record.value()), (Some(&b""[..]), None));
            assert_eq!((record.has_key(), record.is_tombstone()), (true, true));
            assert_eq!(record.headers().count(), 0);
        }
        Ok(())
    });
}

#[test]
fn parts_that_were_not_asked_for_are_hidden() {
    outcome(Needs::nothing(), |record, _| {
        assert_eq!((record.key(), record.value(), record.timestamp_ms()), (None, None, None));
        assert_eq!(record.headers().count(), 0);
        assert!(record.has_key());
        assert_eq!(record.is_tombstone(), record.offset() == 107);
        Ok(())
    });
    outcome(Needs::nothing().header("empty").header("other").key(), |record, _| {
        assert_eq!(record.headers().count(), usize::from(record.offset() == 100));
        assert_eq!(record.header("region"), None);
        assert_eq!(record.has_header("empty"), record.offset() == 100);
        assert!(record.key().is_some());
        Ok(())
    });
}

#[test]
fn a_record_without_edits_passes_unchanged() {
    let kept = outcome(Needs::nothing(), |_, _| Ok(()));
    assert_eq!(kept.records, batch().records.into_iter().map(Judged::Kept).collect::<Vec<_>>());
    assert_eq!(kept.kept_offsets(), [100, 107]);
}

#[test]
fn every_edit_arrives() {
    let expected = OwnedRecord::default().offset(100).timestamp_ms(5);
    let judged = first(|edit| {
        edit.set_header("region", Some(b"europe"));
        edit.rename_header("empty", "void");
        edit.add_header("region", None);
        edit.remove_header("void");
        edit.set_key(b"");
        edit.splice_value(0..1, b"V");
        edit.splice_value(1..1, b"-");
        edit.splice_value(3..5, b"");
    });
    assert_eq!(
        judged,
        Judged::Kept(expected.clone().key("").value("V-al").header("region", "europe").null_header("region"))
    );

    let judged = first(|edit| {
        edit.remove_header("region");
        edit.remove_header("empty");
        edit.clear_value();
        edit.set_value(b"new");
    });
    assert_eq!(judged, Judged::Kept(expected.key("k0").value("new")));
}

#[test]
fn the_first_of_drop_and_reject_wins() {
    assert_eq!(
        first(|edit| {
            edit.set_key(b"x");
            edit.drop();
            edit.reject("late");
            edit.set_value(b"y");
        }),
        Judged::Dropped
    );
    assert_eq!(
        first(|edit| {
            edit.splice_value(0..1, b"x");
            edit.reject("early");
            edit.drop();
            edit.splice_value(9..99, b"x");
        }),
        Judged::Rejected("early".to_owned())
    );
}

#[test]
fn an_error_rejects() {
    let outcome = outcome(Needs::nothing(), |record, edit| {
        edit.set_key(b"x");
        if record.is_tombstone() { Err("has no value".to_owned()) } else { Ok(()) }
    });
    assert_eq!(outcome.kept_offsets(), [100]);
    assert_eq!(outcome.reasons(), ["has no value"]);
}

#[test]
fn splices_that_do_not_fit_reject() {
    let check = |edit: fn(&mut Edit<'_>), reason: &str| {
        assert_eq!(first(edit), Judged::Rejected(reason.to_owned()));
    };
    let order = "the plugin's splices of the value overlap or do not rise";
    let both = "the plugin both set and spliced the value";
    let beyond = "the plugin spliced beyond the end of the value";
    check(|edit| edit.splice_value(0..6, b""), beyond);
    #[expect(clippy::reversed_empty_ranges, reason = "the wrong range is the point")]
    check(|edit| edit.splice_value(2..1, b""), beyond);
    check(|edit| [0..2, 1..3].into_iter().for_each(|range| edit.splice_value(range, b"")), order);
    check(|edit| [3..4, 0..1].into_iter().for_each(|range| edit.splice_value(range, b"")), order);
    check(
        |edit| {
            edit.set_value(b"");
            edit.splice_value(0..0, b"");
        },
        both,
    );
    check(
        |edit| {
            edit.splice_value(0..0, b"");
            edit.clear_value();
        },
        both,
    );

    let outcome = outcome(Needs::nothing(), |record, edit| {
        if record.is_tombstone() {
            edit.splice_value(0..0, b"x");
        }
        Ok(())
    });
    assert_eq!(outcome.reasons(), ["the plugin spliced a value that is not there"]);
}

#[test]
#[should_panic(
    expected = "the host would not take the plugin's answer: splice 0..9 is outside of the value of Some(5) bytes"
)]
fn a_splice_beyond_a_value_that_was_not_asked_for_is_a_fault() {
    outcome(Needs::nothing(), |_, edit| {
        edit.splice_value(0..9, b"x");
        Ok(())
    });
}
