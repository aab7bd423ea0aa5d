//! Paths as operators write them, `customer.email` or `items[*].price`, and the tree of steps that all paths of a
//! plugin share, so that a text is walked once for all of them.

/// More steps than this, over all paths, are refused: the walk keeps sets of them.
const STEP_COUNT_MAX: usize = 4096;

/// Some paths, each known by the number that `add` gave.
#[derive(Debug)]
pub struct Paths {
    pub(crate) nodes: Vec<Node>,
    path_count: usize,
    /// By path: whether the whole member goes, with its name and one comma.
    removals: Vec<bool>,
}

/// Where a walk may stand; node 0 stands before the outermost value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Fields by name.
    pub(crate) fields: Vec<(Box<[u8]>, u16)>,
    /// `*`: any field.
    pub(crate) any: Option<u16>,
    /// `[*]`: each element.
    pub(crate) each: Option<u16>,
    /// `**`: this value and all within it.
    pub(crate) deep: Option<u16>,
    /// Reached by `**`, so it goes along to all values within.
    pub(crate) is_deep: bool,
    /// The first path that ends here.
    pub(crate) end: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Any,
    Each,
    Deep,
}

impl Default for Paths {
    fn default() -> Self {
        Self::new()
    }
}

impl Paths {
    /// No paths yet: nothing is found.
    pub fn new() -> Self {
        Self { nodes: vec![Node::default()], path_count: 0, removals: Vec::new() }
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.path_count == 0
    }

    /// Adds a path and gives its number. Of two paths that find the same value the one added first has it. What a
    /// `removal` finds comes with the place of the whole member. An error is a sentence for the operator.
    pub fn add(&mut self, path: &str, is_removal: bool) -> Result<usize, String> {
        let steps = parse(path)?;
        if self.nodes.len() + steps.len() > STEP_COUNT_MAX {
            return Err(format!("is one path too many: all paths together may have {STEP_COUNT_MAX} steps"));
        }
        let mut node = 0;
        for step in steps {
            node = self.follow(node, step);
        }
        let number = self.path_count;
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.end = node.end.or(u16::try_from(number).ok());
        }
        self.path_count += 1;
        self.removals.push(is_removal);
        Ok(number)
    }

    pub(crate) fn is_removal(&self, path: u16) -> bool {
        self.removals.get(usize::from(path)).copied().unwrap_or(false)
    }

    /// The node behind a step, made if it is new.
    fn follow(&mut self, from: u16, step: Step) -> u16 {
        // `STEP_COUNT_MAX` nodes at most, so the number fits.
        let fresh = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        let is_deep = step == Step::Deep;
        let Some(node) = self.nodes.get_mut(usize::from(from)) else { return from };
        let next = match step {
            Step::Field(name) => {
                let known = node.fields.iter().find(|(field, _)| **field == *name.as_bytes());
                match known {
                    Some((_, next)) => *next,
                    None => {
                        node.fields.push((name.into_bytes().into(), fresh));
                        fresh
                    }
                }
            }
            Step::Any => *node.any.get_or_insert(fresh),
            Step::Each => *node.each.get_or_insert(fresh),
            Step::Deep => *node.deep.get_or_insert(fresh),
        };
        if next == fresh {
            self.nodes.push(Node { is_deep, ..Node::default() });
        }
        next
    }
}

fn parse(path: &str) -> Result<Vec<Step>, String> {
    if path.is_empty() {
        return Err("is empty; a path is a field's name, or several with dots between".to_owned());
    }
    if path == "$" || path.starts_with("$.") || path.starts_with("$[") {
        return Err(format!(
            "\"{path}\" begins with \"$\": begin with the first field's name (a field that is called $ is written ['$'])"
        ));
    }
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let is_first = steps.is_empty();
        let (step, behind) = match rest.strip_prefix('[') {
            Some(inside) => bracket(path, inside)?,
            None => dotted(path, rest, is_first)?,
        };
        steps.push(step);
        rest = behind;
    }
    check_deep(path, &steps)?;
    Ok(steps)
}

/// Behind `[`: `*]` or `'name']`.
fn bracket<'a>(path: &str, inside: &'a str) -> Result<(Step, &'a str), String> {
    if let Some(behind) = inside.strip_prefix("*]") {
        return Ok((Step::Each, behind));
    }
    if let Some(quoted) = inside.strip_prefix('\'')
        && let Some((name, behind)) = quoted.split_once("']")
    {
        return Ok((Step::Field(name.to_owned()), behind));
    }
    Err(format!("\"{path}\" has a \"[\" that is neither [*], each element, nor ['name'], a field"))
}

/// A name up to the next dot or bracket; behind the first step a dot comes before it.
fn dotted<'a>(path: &str, rest: &'a str, is_first: bool) -> Result<(Step, &'a str), String> {
    let name = if is_first { Some(rest) } else { rest.strip_prefix('.') };
    let Some(name) = name else {
        return Err(format!("\"{path}\" lacks a dot before \"{rest}\""));
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (name, behind) = (name.get(..end).unwrap_or_default(), name.get(end..).unwrap_or_default());
    match name {
        "" => Err(format!("\"{path}\" has an empty name; a field that has none is written ['']")),
        "*" => Ok((Step::Any, behind)),
        "**" => Ok((Step::Deep, behind)),
        _ if name.contains('*') => Err(format!(
            "\"{path}\": \"*\" is a whole name or none of it (a field that is called so is written ['{name}'])"
        )),
        _ => Ok((Step::Field(name.to_owned()), behind)),
    }
}

fn check_deep(path: &str, steps: &[Step]) -> Result<(), String> {
    let is_lost = |(index, step): (usize, &Step)| {
        *step == Step::Deep && !matches!(steps.get(index + 1), Some(Step::Field(_) | Step::Any))
    };
    if steps.iter().enumerate().any(is_lost) {
        return Err(format!("\"{path}\": behind \"**\" comes a field's name, as in **.email"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let check = |path: &str, steps: &[Step]| assert_eq!(parse(path).as_deref(), Ok(steps), "{path}");
        let field = |name: &str| Step::Field(name.into());
        check("email", &[field("email")]);
        check("a.b", &[field("a"), field("b")]);
        check("a[*].b", &[field("a"), Step::Each, field("b")]);
        check("[*][*]", &[Step::Each, Step::Each]);
        check("a.*", &[field("a"), Step::Any]);
        check("**.email", &[Step::Deep, field("email")]);
        check("a.**.*", &[field("a"), Step::Deep, Step::Any]);
        check("['a.b'].c['[*]']", &[field("a.b"), field("c"), field("[*]")]);
        check("['']", &[field("")]);
        check("a['x'].y", &[field("a"), field("x"), field("y")]);
        check("größe.$x", &[field("größe"), field("$x")]);
    }

    #[test]
    fn wrong_paths_are_refused_in_words() {
        let check = |path: &str, message: &str| assert_eq!(parse(path), Err(message.to_owned()), "{path}");
        check("", "is empty; a path is a field's name, or several with dots between");
        check(
            "$.a",
            "\"$.a\" begins with \"$\": begin with the first field's name (a field that is called $ is written ['$'])",
        );
        check("a..b", "\"a..b\" has an empty name; a field that has none is written ['']");
        check("a.", "\"a.\" has an empty name; a field that has none is written ['']");
        check(".a", "\".a\" has an empty name; a field that has none is written ['']");
        check("a[0]", "\"a[0]\" has a \"[\" that is neither [*], each element, nor ['name'], a field");
        check("a['b", "\"a['b\" has a \"[\" that is neither [*], each element, nor ['name'], a field");
        check("a[*]b", "\"a[*]b\" lacks a dot before \"b\"");
        check(
            "a*",
            "\"a*\": \"*\" is a whole name or none of it (a field that is called so is written ['a*'])",
        );
        check("a.**", "\"a.**\": behind \"**\" comes a field's name, as in **.email");
        check("**[*].a", "\"**[*].a\": behind \"**\" comes a field's name, as in **.email");
    }

    #[test]
    fn the_number_of_steps_is_obeyed() {
        let mut paths = Paths::new();
        for index in 0..STEP_COUNT_MAX - 1 {
            assert_eq!(paths.add(&format!("f{index}"), false), Ok(index));
        }
        assert_eq!(
            paths.add("more", false),
            Err("is one path too many: all paths together may have 4096 steps".to_owned())
        );
    }
}
