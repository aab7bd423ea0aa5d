//! DescribeCluster.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use crate::call::{Call, Part, Serve};
use crate::node::HOST;

/// Endpoint type of brokers (KIP-919); the other one, 2, is for controllers, which do not exist here.
const BROKERS: i8 = 1;

impl Serve for DescribeClusterRequest {
    async fn serve(self, call: &Call) -> DescribeClusterResponse {
        let outcome = call.attempt(Part::Whole, || {
            if call.version >= 1 && self.endpoint_type != BROKERS {
                return Err(ResponseError::MismatchedEndpointType.into());
            }
            Ok(())
        });
        if let Err(refusal) = outcome {
            return DescribeClusterResponse::default()
                .with_error_code(refusal.code())
                .with_error_message(refusal.wire_message());
        }
        let state = call.shared.lock();
        let alive = state.nodes.iter().filter(|(_, node)| node.alive);
        let brokers = alive.map(|(id, node)| {
            DescribeClusterBroker::default()
                .with_broker_id(BrokerId(*id))
                .with_host(StrBytes::from_static_str(HOST))
                .with_port(i32::from(node.port))
        });
        DescribeClusterResponse::default()
            .with_cluster_id(StrBytes::from_string(call.shared.options.cluster_id.clone()))
            .with_controller_id(BrokerId(state.controller()))
            .with_brokers(brokers.collect())
    }
}
