//! The flow's file. A newcomer sees it, so it holds what such a file needs and nothing else.

/// What messages call it.
pub(super) const NAME: &str = "demo.properties";

/// MirrorMaker 2's file for `east->west`. The clusters have one broker each, hence the replication factors.
pub(super) fn text(east: &str, west: &str) -> String {
    format!(
        "clusters = east, west\n\
         east.bootstrap.servers = {east}\n\
         west.bootstrap.servers = {west}\n\
         \n\
         east->west.enabled = true\n\
         east->west.topics = orders\n\
         \n\
         replication.factor = 1\n\
         offset.storage.replication.factor = 1\n"
    )
}
