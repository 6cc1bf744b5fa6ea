//! Names and the literal words that follow them, from a shell script, Python or YAML.

use std::collections::BTreeMap;

/// Values by name; in scripts and Python the last one of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Literals(BTreeMap<String, Vec<String>>);

/// Whether a value is not literal but computed when the file runs.
pub fn is_computed(value: &str) -> bool {
    value.contains(['$', '`']) || value.starts_with("computed:")
}

/// A word without what closes a list or a command that began before it.
fn without_closing(word: &str) -> &str {
    let mut word = word.trim_end_matches(';');
    while word.ends_with(')') && word.matches(')').count() > word.matches('(').count() {
        word = word[..word.len() - 1].trim_end_matches(';');
    }
    word
}

impl Literals {
    /// The words under a name.
    pub fn get(&self, name: &str) -> Option<&Vec<String>> {
        self.0.get(name)
    }

    /// Whether there is a value under a name, literal or not.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The same with `-` for `_` in names; a switch that is on has no value.
    pub fn with_dashes(&self) -> Self {
        let renamed = self.0.iter().map(|(name, values)| {
            let values = values.iter().filter(|value| *value != "True").cloned().collect();
            (name.replace('_', "-"), values)
        });
        Self(renamed.collect())
    }

    /// The flags of a script, without their dashes and with `-` for `_`; variables that are set to
    /// literals stand for these.
    pub fn of_script(text: &str) -> Self {
        let lines = text.replace("\\\n", " ");
        let lines: Vec<&str> = lines.lines().map(without_comment).collect();
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        let mut found = Self::default();
        let mut name: Option<String> = None;
        for line in lines {
            for word in words(line) {
                let word = substituted(&word, &variables);
                if let Some((variable, value)) = assignment(&word) {
                    variables.insert(variable.to_owned(), value.to_owned());
                    name = None;
                } else if let Some(flag) = word.strip_prefix("--") {
                    let (flag, value) = match flag.split_once('=') {
                        Some((flag, value)) => (flag, Some(value)),
                        None => (flag, None),
                    };
                    let flag = flag.replace('_', "-");
                    found.0.insert(flag.clone(), value.map(str::to_owned).into_iter().collect());
                    name = value.is_none().then_some(flag);
                } else if let Some(name) = &name {
                    let word = without_closing(&word);
                    if !word.is_empty() {
                        found.0.entry(name.clone()).or_default().push(word.to_owned());
                    }
                }
            }
        }
        found
    }

    /// What Python assigns: `a.b.name = value`, `name=value,`; by the last part of the name.
    pub fn of_python(text: &str) -> Self {
        let mut found = Self::default();
        let joined = joined_brackets(text);
        for line in joined.lines() {
            let line = line.split(" #").next().unwrap_or(line).trim().trim_end_matches(',');
            if line.starts_with('#') || line.starts_with("def ") || line.starts_with("if ") {
                continue;
            }
            let Some((name, value)) = line.split_once('=').filter(|(_, v)| !v.starts_with('='))
            else {
                continue;
            };
            let name = name.split(':').next().unwrap_or(name).trim();
            let name = name.rsplit(['.', ' ', '(']).next().unwrap_or(name);
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_name) {
                continue;
            }
            let values = python_values(value.trim());
            match values.first().map(String::as_str) {
                Some("None") => drop(found.0.remove(name)),
                _ => drop(found.0.insert(name.to_owned(), values)),
            }
        }
        found
    }

    /// Keys of the outermost level of YAML.
    pub fn of_yaml(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines().map(without_comment) {
            if let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with(' ')) {
                let value = value.trim().trim_matches(['"', '\'']);
                found.0.insert(name.trim().to_owned(), vec![value.to_owned()]);
            }
        }
        found
    }
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split(" #").next().unwrap_or(line)
}

/// The words of a line of a shell, quotes taken off; arithmetic in brackets is one word.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quote, mut depth) = (None, 0_usize);
    for c in line.chars() {
        let inside = word.as_ref().is_some_and(|word| word.contains('$'));
        match c {
            c if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '(' if inside => {
                depth += 1;
                word.get_or_insert_default().push(c);
            }
            ')' if inside && depth > 0 => {
                depth -= 1;
                word.get_or_insert_default().push(c);
            }
            c if c.is_whitespace() && quote.is_none() && depth == 0 => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A variable and what it is set to.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let word = word.strip_prefix("export ").unwrap_or(word);
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let named = first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    (named && !value.starts_with('(')).then_some((name, value))
}

/// A word with its variables replaced by what they are set to, or by what stands after `:-`.
fn substituted(word: &str, variables: &BTreeMap<String, String>) -> String {
    let mut said = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        said += before;
        let (inner, length) = if let Some(inside) = after.strip_prefix('{') {
            let inner = inside.split_once('}').map(|(inner, _)| inner);
            inner.map_or((after, after.len()), |inner| (inner, inner.len() + 2))
        } else {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())];
            (name, name.len())
        };
        let (name, usual) = match inner.split_once(":-") {
            Some((name, usual)) => (name, Some(usual)),
            None => (inner, None),
        };
        match variables.get(name).map(String::as_str).or(usual) {
            Some(value) if !name.is_empty() => said += value,
            _ => {
                said.push('$');
                said += &after[..length];
            }
        }
        rest = &after[length..];
    }
    said + rest
}

/// The text with everything inside square brackets on one line.
fn joined_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .map(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if c == '\n' && depth > 0 { ' ' } else { c }
        })
        .collect()
}

/// A literal of Python as words: the items of a list; what is none is marked.
fn python_values(value: &str) -> Vec<String> {
    let item = |value: &str| {
        let value = value.trim();
        let quoted =
            value.len() >= 2 && value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']);
        let plain = value.chars().all(|c| c.is_ascii_digit() || "._-+e".contains(c));
        if quoted {
            value[1..value.len() - 1].to_owned()
        } else if plain || ["True", "False", "None"].contains(&value) {
            value.to_owned()
        } else {
            format!("computed: {value}")
        }
    };
    let inside = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
    match inside {
        Some(inside) if inside.contains('[') => vec![value.to_owned()],
        Some(inside) => inside.split(',').filter(|one| !one.trim().is_empty()).map(item).collect(),
        None => vec![item(value)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_stand_for_what_they_are_set_to() {
        let found = Literals::of_script(
            "A=3\nexport B=\"4\"\nx --one $A --two ${B} --three=${C:-5} --four $D",
        );
        let of = |name: &str| found.get(name).unwrap()[0].clone();
        assert_eq!([of("one"), of("two"), of("three"), of("four")], ["3", "4", "5", "$D"]);
        assert!(is_computed(&of("four")));
        let list = Literals::of_script("ARGS=(\n --five $((N / 2)) --six 7)\n(x --seven $((M)))");
        let of = |name: &str| list.get(name).unwrap()[0].clone();
        assert_eq!([of("five"), of("six"), of("seven")], ["$((N / 2))", "7", "$((M))"]);
    }

    #[test]
    fn python_says_what_is_literal() {
        let text = "cfg.model.a = 8\ncfg.b = [\n  \"x\",\n  'y',\n]\nc=f(3),\nd = None\ne: int = 4  # four\n";
        let found = Literals::of_python(text);
        assert_eq!(found.get("a"), Some(&vec!["8".into()]));
        assert_eq!(found.get("b"), Some(&vec!["x".into(), "y".into()]));
        assert!(is_computed(&found.get("c").unwrap()[0]));
        assert_eq!(found.get("d"), None);
        assert_eq!(found.get("e"), Some(&vec!["4".into()]));
    }
}
