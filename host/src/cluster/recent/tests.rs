//! Against a broker in memory.

use tidegate_embedded::{Cluster, ClusterOptions};
use tidegate_wire::batch::{BatchBuilder, Codec};
use tidegate_wire::client::ClientOptions;

use super::*;

async fn stage(partitions: i32) -> (Cluster, Client) {
    let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
    cluster.create_topic("orders", partitions, &[]).unwrap();
    let options =
        ClientOptions { bootstrap_servers: vec![cluster.bootstrap_servers()], ..ClientOptions::default() };
    let client = Client::connect(options).await.unwrap();
    (cluster, client)
}

fn append(cluster: &Cluster, partition: i32, values: &[&str]) {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::Lz4);
    for (index, value) in values.iter().enumerate() {
        let headers = [("n".as_bytes(), Some(value.as_bytes()))];
        builder.push_parts(None, Some(value.as_bytes()), &headers, index as i64);
    }
    let batch = builder.finish().unwrap().to_batch();
    cluster.append_at_end("orders", partition, &batch.bytes).unwrap();
}

fn orders() -> TopicName {
    TopicName::parse("orders").unwrap()
}

/// Partition, and offset and value of each record.
fn seen(batches: &[OwnedBatch]) -> Vec<(i32, Vec<(i64, String)>)> {
    let record = |record: &OwnedRecord| {
        (record.offset, String::from_utf8(record.value.clone().unwrap_or_default()).unwrap())
    };
    batches.iter().map(|batch| (batch.partition, batch.records.iter().map(record).collect())).collect()
}

#[tokio::test]
async fn the_last_records_of_each_partition_come() {
    let (cluster, client) = stage(3).await;
    append(&cluster, 0, &["a", "b", "c"]);
    append(&cluster, 0, &["d"]);
    append(&cluster, 2, &["x"]);

    let batches = recent_records(&client, &orders(), 4).await.unwrap();

    let text = |offset, value: &str| (offset, value.to_owned());
    assert_eq!(seen(&batches), [(0, vec![text(2, "c"), text(3, "d")]), (2, vec![text(0, "x")])]);
    let record = &batches[0].records[0];
    assert_eq!((record.timestamp_ms, &record.key), (2, &None));
    assert_eq!(record.headers, [(b"n".to_vec(), Some(b"c".to_vec()))]);
    cluster.shutdown().await;
}

#[tokio::test]
async fn an_empty_topic_has_no_recent_records() {
    let (cluster, client) = stage(2).await;
    assert_eq!(recent_records(&client, &orders(), 10).await.unwrap(), []);
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_said() {
    let (cluster, client) = stage(1).await;
    let topic = TopicName::parse("nothing").unwrap();
    let error = recent_records(&client, &topic, 10).await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "could not look at topic \"nothing\": the cluster answers UnknownTopicOrPartition"
    );
    cluster.shutdown().await;
}
