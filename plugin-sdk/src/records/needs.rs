//! Which parts of a record a plugin looks at.

/// Which parts of a record the host sends. Start from [`nothing`](Self::nothing) and add; what is always known is
/// topic, partition, offset, and whether there is a key and a value.
///
/// ```
/// use tidegate_plugin::records::Needs;
///
/// let needs = Needs::nothing().key().header("region").header("tenant");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    pub(crate) key: bool,
    pub(crate) value: bool,
    pub(crate) headers: HeaderNeeds,
    pub(crate) timestamps: bool,
}

/// Which headers of a record the host sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderNeeds {
    None,
    /// Those of these names; at least one.
    Named(Vec<String>),
    All,
}

impl HeaderNeeds {
    /// The names as the contract has them; empty when it is not by name.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn into_names(self) -> Vec<String> {
        match self {
            Self::Named(names) => names,
            Self::None | Self::All => Vec::new(),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Named(names) => names.iter().any(|needed| needed == name),
            Self::All => true,
        }
    }
}

impl Needs {
    /// No part.
    pub fn nothing() -> Self {
        Self { key: false, value: false, headers: HeaderNeeds::None, timestamps: false }
    }

    /// Every part.
    pub fn all() -> Self {
        Self { key: true, value: true, headers: HeaderNeeds::All, timestamps: true }
    }

    /// And the key.
    pub fn key(mut self) -> Self {
        self.key = true;
        self
    }

    /// And the value.
    pub fn value(mut self) -> Self {
        self.value = true;
        self
    }

    /// And all headers, whatever was asked for by name.
    pub fn headers(mut self) -> Self {
        self.headers = HeaderNeeds::All;
        self
    }

    /// And the headers of this name.
    pub fn header(mut self, name: impl Into<String>) -> Self {
        match &mut self.headers {
            HeaderNeeds::None => self.headers = HeaderNeeds::Named(vec![name.into()]),
            HeaderNeeds::Named(names) => names.push(name.into()),
            HeaderNeeds::All => {}
        }
        self
    }

    /// And the timestamp.
    pub fn timestamps(mut self) -> Self {
        self.timestamps = true;
        self
    }
}
