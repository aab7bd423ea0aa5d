//! Which generation of plugins a flow starts with, and where the modules of a decision come from.

use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use tracing::{info, warn};

use super::book::Book;
use super::decision::{AtStart, DecidedPlugin, Decision, Kind, Occasion, at_start, fingerprint};
use super::policies::{Loaded, Loader, Modules, Origin, Ready, Wanted, of_file};
use crate::cluster::{ClusterAdmin, digest_of, plugins_topic};
use crate::config::{PluginConfig, PluginModule};
use crate::plugin::read_module;
use crate::serve::orders::Who;
use crate::status::now_ms;

/// What a flow starts with.
pub(super) struct First {
    pub(super) ready: Ready,
    pub(super) decision: Decision,
    /// The decision is to be written down.
    pub(super) must_write: bool,
    /// What the configuration file says.
    pub(super) file: Vec<DecidedPlugin>,
}

/// Loads what the file says.
pub(super) async fn load_file(loader: &Loader) -> anyhow::Result<Loaded> {
    let loader = loader.clone();
    blocking(move || loader.load(of_file(&loader.flow), &Modules::new())).await
}

/// Chooses between the file and the last decision, and makes it ready.
pub(super) async fn first(
    loader: &Loader,
    file: Loaded,
    book: &Book,
    target: &ClusterAdmin,
    node: &str,
) -> anyhow::Result<First> {
    let flow = &loader.flow;
    let of_file = file.decided();
    let fingerprint = fingerprint(&of_file);
    if let Some(unreadable) = book.unreadable() {
        // What holds is unknown here; whatever ran instead might let out what it keeps in.
        bail!(
            "flow {}: {unreadable}; run the version of Tidegate that wrote it, or roll back on a node that runs",
            flow.name
        );
    }
    let chosen = match at_start(book.last(), &fingerprint, !flow.plugins.is_empty()) {
        AtStart::Decision(decision) => match off_pin(&flow.plugins, &decision) {
            Some(why) => {
                warn!(flow = %flow.name, "{why}, so the file decides");
                AtStart::File { generation: decision.generation + 1, is_written: true }
            }
            None => AtStart::Decision(decision),
        },
        file => file,
    };
    let (decision, loaded, must_write) = match chosen {
        AtStart::Decision(decision) => {
            let loaded = load_decision(loader, &decision, &file, book, target).await.with_context(|| {
                let generation = decision.generation;
                format!("flow {}: generation {generation} of its plugins can't run here", flow.name)
            })?;
            info!(flow = %flow.name, generation = decision.generation, "plugins are as was decided last");
            (*decision, loaded, false)
        }
        AtStart::File { generation, is_written } => {
            if let Some(last) = book.last().filter(|last| last.kind != Kind::File) {
                // What was swapped may have held something back that the file lets pass: nobody shall find out by chance.
                warn!(
                    flow = %flow.name, given_up = last.generation, what = %last.what,
                    "what the file says about plugins has changed since they were last decided (settings, lists, or the bytes of \
                     a module, also of one that a new Tidegate brings), so the file decides and what was swapped is given up"
                );
            }
            let occasion = Occasion {
                kind: Kind::File,
                who: Who { user: "file".to_owned(), host: "-".to_owned() },
                at_ms: now_ms(),
                node: node.to_owned(),
                fingerprint,
                what: "the configuration file".to_owned(),
            };
            (Decision::new(&flow.name, generation, occasion, of_file.clone()), file, is_written)
        }
    };
    let (loader, number) = (loader.clone(), decision.generation);
    let ready = blocking(move || loader.ready(number, loaded)).await?;
    Ok(First { ready, decision, must_write, file: of_file })
}

/// Loads the plugins of a decision. Those that `running` has just so are used again; modules come from there, from the files
/// that are named, or from the topic.
pub(super) async fn load_decision(
    loader: &Loader,
    decision: &Decision,
    running: &Loaded,
    book: &Book,
    target: &ClusterAdmin,
) -> anyhow::Result<Loaded> {
    if let Some(why) = off_pin(&loader.flow.plugins, decision) {
        bail!("{why}; take .sha256 out of the file, or change it, and start again");
    }
    let mut wanted = Vec::new();
    let same = running.decided();
    for plugin in &decision.plugins {
        let config = plugin.config().with_context(|| format!("plugin \"{}\"", plugin.name))?;
        let is_same = |other: &&DecidedPlugin| {
            DecidedPlugin { module: plugin.module.clone(), ..(*other).clone() } == *plugin
        };
        let known = same.iter().find(is_same).and_then(|same| running.plugin(&same.name));
        let origin = match known {
            Some(known) => Origin::Loaded(Arc::clone(known)),
            None => module(loader, plugin, &config.module, running, book, target).await?,
        };
        wanted.push(Wanted { config, origin });
    }
    let (loader, known) = (loader.clone(), running.modules.clone());
    blocking(move || loader.load(wanted, &known)).await
}

/// What a decision names in place of a module that the file pins. A pin holds for whatever would run, not for the file alone.
fn off_pin(file: &[PluginConfig], decision: &Decision) -> Option<String> {
    decision.plugins.iter().find_map(|plugin| {
        let own = file.iter().find(|own| own.name == plugin.name)?;
        let pin = own.sha256.as_ref().filter(|pin| !pin.eq_ignore_ascii_case(&plugin.digest))?;
        let (generation, name, digest) = (decision.generation, &plugin.name, &plugin.digest);
        Some(format!("the file pins plugin \"{name}\" to {pin}, and generation {generation} has {digest}"))
    })
}

async fn module(
    loader: &Loader,
    plugin: &DecidedPlugin,
    module: &PluginModule,
    running: &Loaded,
    book: &Book,
    target: &ClusterAdmin,
) -> anyhow::Result<Origin> {
    if let Some(bytes) = running.modules.get(&plugin.digest) {
        return Ok(Origin::Bytes(bytes.clone()));
    }
    // A builtin of another version of Tidegate is refused by its digest.
    if matches!(module, PluginModule::Builtin(_)) {
        return Ok(Origin::Config);
    }
    if let Some(bytes) = local(loader, plugin, module).await {
        return Ok(Origin::Bytes(bytes));
    }
    let Some(place) = book.module(&plugin.digest) else {
        bail!(
            "module {} of plugin \"{}\" is neither in {module} on this node nor, being too large or deleted, in topic \"{}\"; put \
             the file there",
            plugin.digest,
            plugin.name,
            plugins_topic(&loader.flow.name.source)
        )
    };
    let topic = plugins_topic(&loader.flow.name.source);
    let bytes = place.read(target.client(), &topic, &plugin.digest).await?;
    Ok(Origin::Bytes(Bytes::from(bytes)))
}

/// The module in the file that the decision names, or in the one that this node's configuration names, if it is that one.
async fn local(loader: &Loader, plugin: &DecidedPlugin, module: &PluginModule) -> Option<Bytes> {
    let own = loader.flow.plugins.iter().find(|own| own.name == plugin.name).map(|own| own.module.clone());
    let places: Vec<PluginModule> = [Some(module.clone()), own].into_iter().flatten().collect();
    let digest = plugin.digest.clone();
    blocking(move || {
        let read = |place: &PluginModule| match read_module(place) {
            Ok(bytes) if digest_of(&bytes) == digest => Some(Bytes::from(bytes.into_owned())),
            _ => None,
        };
        places.iter().find_map(read).context("not here")
    })
    .await
    .ok()
}

/// Runs what takes its time beside the runtime's threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await.context("loading plugins was interrupted")?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::decision::tests::{decision, plugin};

    #[test]
    fn a_pin_of_the_file_holds_for_decisions_too() {
        let decided = decision(7, "f", vec![plugin("mask", "d2")]);
        let mut own = plugin("mask", "d2").config().unwrap();
        for (pin, expected) in [
            (None, None),
            (Some("D2"), None),
            (Some("d1"), Some("the file pins plugin \"mask\" to d1, and generation 7 has d2")),
        ] {
            own.sha256 = pin.map(str::to_owned);
            assert_eq!(off_pin(std::slice::from_ref(&own), &decided).as_deref(), expected);
        }
        own.name = "other".to_owned();
        own.sha256 = Some("d1".to_owned());
        assert_eq!(off_pin(&[own], &decided), None);
    }
}
