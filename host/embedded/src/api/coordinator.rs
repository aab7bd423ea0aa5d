//! FindCoordinator for groups.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use crate::call::{Call, Part, Serve};
use crate::node::HOST;
use crate::refusal::Refusal;

const KEY_GROUP: i8 = 0;
/// Version from which several keys are asked for at once (KIP-699).
const BATCHED_VERSION: i16 = 4;

struct Place {
    node: i32,
    port: u16,
}

fn find(call: &Call, key_type: i8, key: &str) -> Result<Place, Refusal> {
    call.attempt(Part::Whole, || {
        if key_type != KEY_GROUP {
            return Err(Refusal::new(
                ResponseError::InvalidRequest,
                format!("coordinator type {key_type} does not exist here: groups (0) alone have one"),
            ));
        }
        let state = call.shared.lock();
        let node = state.coordinator(key).ok_or(ResponseError::CoordinatorNotAvailable)?;
        let port = state.nodes.get(&node).ok_or(ResponseError::CoordinatorNotAvailable)?.port;
        Ok(Place { node, port })
    })
}

impl Serve for FindCoordinatorRequest {
    async fn serve(self, call: &Call) -> FindCoordinatorResponse {
        if call.version >= BATCHED_VERSION {
            let keys = self.coordinator_keys.into_iter();
            let coordinators = keys.map(|key| {
                let found = find(call, self.key_type, &key);
                coordinator(key, found)
            });
            return FindCoordinatorResponse::default().with_coordinators(coordinators.collect());
        }
        let answer = FindCoordinatorResponse::default();
        match find(call, self.key_type, &self.key) {
            Ok(place) => answer
                .with_node_id(BrokerId(place.node))
                .with_host(StrBytes::from_static_str(HOST))
                .with_port(i32::from(place.port))
                .with_error_message(None),
            Err(refusal) => {
                let answer = answer.with_error_code(refusal.code()).with_node_id(BrokerId(-1)).with_port(-1);
                if call.version >= 1 { answer.with_error_message(refusal.wire_message()) } else { answer }
            }
        }
    }
}

fn coordinator(key: StrBytes, found: Result<Place, Refusal>) -> Coordinator {
    let answer = Coordinator::default().with_key(key);
    match found {
        Ok(place) => answer
            .with_node_id(BrokerId(place.node))
            .with_host(StrBytes::from_static_str(HOST))
            .with_port(i32::from(place.port))
            .with_error_message(None),
        Err(refusal) => answer
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(refusal.code())
            .with_error_message(refusal.wire_message()),
    }
}
