//! Against the records of the crate kafka-protocol, as far as those go: header names are UTF-8 and don't
//! repeat there.

use bytes::BytesMut;
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use super::*;

fn theirs(record: &OwnedRecord) -> Record {
    let headers: IndexMap<StrBytes, Option<Bytes>> = record
        .headers
        .iter()
        .map(|(name, value)| {
            let name = StrBytes::from_string(String::from_utf8(name.clone()).unwrap());
            (name, value.clone().map(Bytes::from))
        })
        .collect();
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: record.offset,
        sequence: record.offset as i32,
        timestamp: record.timestamp_ms,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers,
    }
}

/// What both can express: few and ordinary times (theirs overflow otherwise), each header name once, in
/// UTF-8.
fn expressible(mut records: Vec<OwnedRecord>) -> Vec<OwnedRecord> {
    for record in &mut records {
        record.timestamp_ms = record.timestamp_ms.rem_euclid(1 << 50);
        let mut seen = std::collections::BTreeSet::new();
        record.headers.retain(|(name, _)| std::str::from_utf8(name).is_ok() && seen.insert(name.clone()));
    }
    records
}

proptest! {
    #[test]
    fn they_read_what_we_write(records in any_records()) {
        let records = expressible(records);
        let mut bytes = build(Codec::None, &records).to_batch().bytes;
        let read = RecordBatchDecoder::decode(&mut bytes).unwrap().records;
        prop_assert_eq!(read.len(), records.len());
        for (read, record) in read.iter().zip(&records) {
            let expected = theirs(record);
            prop_assert_eq!(read.offset, expected.offset);
            prop_assert_eq!(read.timestamp, expected.timestamp);
            prop_assert_eq!(&read.key, &expected.key);
            prop_assert_eq!(&read.value, &expected.value);
            prop_assert_eq!(&read.headers, &expected.headers);
        }
    }

    #[test]
    fn we_read_what_they_write(records in any_records()) {
        let records = expressible(records);
        let written: Vec<Record> = records.iter().map(theirs).collect();
        let options = RecordEncodeOptions { version: 2, compression: Compression::None };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &written, &options).unwrap();
        let mut read_records = Vec::new();
        for batch in Batches::new(bytes.freeze()) {
            let batch = batch.unwrap();
            prop_assert_eq!(batch.check_crc(), Ok(()));
            read_records.extend(read(&batch).unwrap());
        }
        prop_assert_eq!(read_records, records);
    }
}
