//! Joins the page's scripts into one.
//!
//! Each file of `js/` is an ordinary module, so that editors and `node --check` understand it. A
//! page opened from disk may not load modules, so each becomes a function that returns what it
//! exports: names that a file keeps to itself cannot meet those of another.

use std::fmt::Write as _;

/// The charting library, as published; see docs/report.md on how to update it.
const LIBRARY: &str = include_str!("vendor/uPlot.iife.min.js");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("js/", $name, ".js")))),*]
    };
}

/// Our modules, each after those that it imports; the last one starts the page.
const MODULES: [(&str, &str); 37] = modules![
    "dom",
    "format",
    "palette",
    "decode",
    "download",
    "table",
    "figure",
    "labels",
    "chip",
    "chip_figure",
    "baselines",
    "headline",
    "axes",
    "filters",
    "shades",
    "points",
    "view",
    "scatter",
    "scatter_vector",
    "space",
    "passes",
    "timeline",
    "breakdown",
    "stages",
    "plan",
    "roofline",
    "tiles",
    "layer",
    "whatif",
    "proof",
    "command",
    "search_page",
    "fronts",
    "compare_page",
    "advice",
    "plan_page",
    "main",
];

/// The whole script.
pub fn joined() -> String {
    let mut script = format!("{LIBRARY}\n\"use strict\";\n");
    for (name, text) in MODULES {
        let _ = writeln!(script, "const {name}_module = (() => {{\n{}}})();", wrapped(text));
    }
    script
}

/// A module's text with imports read from their module's value and exports returned.
fn wrapped(text: &str) -> String {
    let mut body = String::new();
    let mut exports = Vec::new();
    let mut rest = text;
    while let Some((names, module, after)) = rest.find("import {").and_then(|at| {
        body.push_str(&rest[..at]);
        import(&rest[at..])
    }) {
        let _ = write!(body, "const {{{names}}} = {module}_module;");
        rest = after;
    }
    for line in rest.lines() {
        let kept = line.strip_prefix("export ").unwrap_or(line);
        if kept.len() < line.len() {
            let name = kept.split(|c: char| !c.is_alphanumeric() && c != '_').nth(1);
            exports.push(name.expect("an export is `function name` or `const name`"));
        }
        let _ = writeln!(body, "{kept}");
    }
    let _ = writeln!(body, "return {{ {} }};", exports.join(", "));
    body
}

/// The names and the module of an import, and what follows it.
fn import(text: &str) -> Option<(&str, &str, &str)> {
    let (names, rest) = text.strip_prefix("import {")?.split_once("} from \"./")?;
    let (module, after) = rest.split_once(".js\";")?;
    Some((names, module, after))
}

#[cfg(test)]
mod tests {
    use sha2::Digest;
    use sha2::Sha256;

    use super::*;

    #[test]
    fn every_import_names_an_export_of_an_earlier_module() {
        for (at, (name, text)) in MODULES.iter().enumerate() {
            assert_eq!(text.matches("\nimport ").count(), text.matches("\nimport {").count());
            for (place, _) in text.match_indices("import {") {
                let (names, from, _) = import(&text[place..]).expect("imports name a file of js/");
                let earlier = MODULES[..at].iter().find(|(module, _)| *module == from);
                let (_, source) = earlier.unwrap_or_else(|| panic!("{name} comes before {from}"));
                for word in names.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                    let is_exported = exports(source).contains(&word);
                    assert!(is_exported, "{name} imports {word}, which {from} does not export");
                }
            }
        }
    }

    fn exports(source: &str) -> Vec<&str> {
        let lines = source.lines().filter_map(|line| line.strip_prefix("export "));
        lines
            .filter_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').nth(1))
            .collect()
    }

    #[test]
    fn scripts_can_be_read_in_one_sitting() {
        for (name, text) in MODULES {
            let n_lines = text.lines().count();
            assert!(n_lines <= 300, "{name}.js has {n_lines} lines: look for the seam");
        }
    }

    #[test]
    fn no_script_makes_markup_of_text() {
        for (name, text) in MODULES {
            for banned in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(banned), "{name}.js uses {banned}");
            }
        }
    }

    #[test]
    fn no_script_can_close_its_own_element() {
        assert!(!joined().to_lowercase().contains("</script"));
    }

    #[test]
    fn the_charting_library_is_the_published_one() {
        let sums = include_str!("vendor/SHA256SUMS");
        let files = [
            ("uPlot.iife.min.js", LIBRARY),
            ("uPlot.min.css", include_str!("vendor/uPlot.min.css")),
            ("uPlot.LICENSE", include_str!("vendor/uPlot.LICENSE")),
        ];
        for (name, text) in files {
            let mut sum = String::new();
            for byte in Sha256::digest(text) {
                let _ = write!(sum, "{byte:02x}");
            }
            assert!(sums.contains(&format!("{sum}  {name}")), "{name} was changed: {sum}");
        }
    }
}
