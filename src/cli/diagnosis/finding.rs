//! One thing `keep doctor` says: a promise, whether it is kept here, and what would raise it.

use platform::machine::Limit;
use serde_json::{Map, Value};

use super::super::paint::Paint;
use crate::text::escaped;

/// One thing said.
pub struct Finding {
    /// Where it belongs.
    pub area: Area,
    /// Its name in the JSON form.
    pub name: String,
    /// `None` where nothing can be tried.
    pub works: Option<bool>,
    /// What is kept if it works.
    pub promise: &'static str,
    /// Why not, and what happens without; or what was found.
    pub detail: Option<String>,
    /// What would raise it.
    pub raise: Option<String>,
    /// The limit, if it is one.
    pub limit: Option<Limit>,
}

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Ways to learn of changes.
    Backends,
    /// Limits of the system.
    Limits,
    /// Things tried in the tree.
    Tree,
    /// Things tried where state is kept.
    State,
    /// What a watch can do that was started with privilege.
    Privilege,
    /// Programs that need not be asked about.
    Trust,
    /// What a files worker is kept from.
    Worker,
    /// Terminal, desktop, kernel.
    System,
}

impl Area {
    /// Every one, in the order in which they are told.
    pub const ALL: [Area; 8] = [
        Area::Backends,
        Area::Limits,
        Area::Tree,
        Area::State,
        Area::Privilege,
        Area::Trust,
        Area::Worker,
        Area::System,
    ];

    /// The name in the JSON form.
    pub const fn name(self) -> &'static str {
        match self {
            Area::Backends => "backends",
            Area::Limits => "limits",
            Area::Tree => "tree",
            Area::State => "state",
            Area::Privilege => "privilege",
            Area::Trust => "trust",
            Area::Worker => "worker",
            Area::System => "system",
        }
    }
}

/// A finding of which only the promise is known yet.
pub fn finding(area: Area, name: &str, promise: &'static str) -> Finding {
    Finding { area, name: name.to_owned(), works: None, promise, detail: None, raise: None, limit: None }
}

impl Finding {
    /// Its row in the JSON form.
    pub fn to_json(&self) -> Value {
        let mut row = Map::new();
        row.insert("area".into(), self.area.name().into());
        row.insert("name".into(), self.name.as_str().into());
        row.insert("works".into(), self.works.into());
        row.insert("promise".into(), self.promise.into());
        row.insert("detail".into(), self.detail.clone().into());
        row.insert("raise".into(), self.raise.clone().into());
        if let Some(limit) = &self.limit {
            row.insert("value".into(), limit.value.into());
            row.insert("used".into(), limit.used.into());
        }
        Value::Object(row)
    }

    /// Its lines for people.
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        let mark = match self.works {
            Some(true) => paint.green("yes"),
            Some(false) => paint.yellow(" no"),
            None => "  -".to_owned(),
        };
        let mut lines = vec![format!("{mark}  {:<14}  {}", self.name, self.promise)];
        let more = |text: &str| format!("{:21}{}", "", paint.dim(text));
        lines.extend(self.detail.iter().map(|detail| more(&escaped(detail.as_bytes()))));
        lines.extend(self.raise.iter().map(|raise| more(&format!("to raise it: {raise}"))));
        lines
    }
}
