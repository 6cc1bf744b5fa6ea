//! A search result or a plan as one HTML page that needs nothing else.
//!
//! In: a [`Saved`] result or a [`Plan`]. Out: a page with its data, style and script inside; the same files give
//! the same bytes. Everything that a reader sees is made by the scripts in `js/`, which put names
//! into the page only as text; data stands in a block that is never run (see [`pack`]).

mod pack;
mod plan;
mod script;
mod tree;

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::quantity::shown;
use super::saved::Saved;
use crate::plan::Plan;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const CHART_STYLE: &str = include_str!("vendor/uPlot.min.css");

/// Writes the page of one result.
pub fn write(saved: &Saved, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("phaze: {}", saved.models().join(", "));
    page(&title, &pack::content("search", &[saved]), out)
}

/// Writes the page that sets two results side by side.
pub fn write_comparison(first: &Saved, second: &Saved, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("phaze: {} and {}", first.name, second.name);
    page(&title, &pack::content("compare", &[first, second]), out)
}

/// Writes the page of a plan that was checked; `file` is the name of its `plan.json`.
pub fn write_plan(plan: &Plan, file: &str, out: &mut dyn Write) -> io::Result<()> {
    let content = json!({"kind": "plan", "plan": plan::content(plan, file)});
    page(&format!("phaze: {}", plan.name), &pack::inert(&content.to_string()), out)
}

/// Writes the page of a plan with what it means, as [`super::advice::value`] tells it.
pub fn write_advice(
    plan: &Plan,
    file: &str,
    advice: &Value,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut content = plan::content(plan, file);
    content["advice"] = plan::advice(advice);
    let content = json!({"kind": "plan", "plan": content});
    page(&format!("phaze: {}", plan.name), &pack::inert(&content.to_string()), out)
}

/// Fills the template. Parts are written in order, so that none is searched for placeholders.
fn page(title: &str, content: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) =
            after.split_once("}}").expect("placeholders of the template are closed");
        out.write_all(before.as_bytes())?;
        match name {
            "title" => out.write_all(escaped(&shown(title)).as_bytes())?,
            "style" => write!(out, "{CHART_STYLE}\n{STYLE}")?,
            "content" => out.write_all(content.as_bytes())?,
            "script" => out.write_all(script::joined().as_bytes())?,
            other => unreachable!("the template has no placeholder `{other}`"),
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Text as HTML shows it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::saved::DesignTable;

    fn page_of(model: &str) -> String {
        let outcome = json!({"request": {"models": [{"name": model}]}, "winner": null});
        let saved = Saved { name: model.into(), outcome, designs: DesignTable::default() };
        let mut bytes = Vec::new();
        write(&saved, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        let name = "</script><script>alert(1)</script><!--";
        let page = page_of(name);
        assert!(!page.contains("alert(1)</script>"), "the name closed a script");
        assert!(!page.contains(name));
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
    }

    #[test]
    fn a_page_asks_for_nothing_outside_itself() {
        let page = page_of("gpt2-xl");
        let markup = page.split("<script").next().unwrap();
        let links: Vec<&str> = markup.split("href=\"").skip(1).collect();
        assert!(links.iter().all(|link| link.starts_with('#') || link.starts_with("data:")));
        assert!(!page.contains("src=\"http") && !page.contains("@import"));
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn a_placeholder_in_a_name_stays_text() {
        assert!(page_of("{{script}}").contains("<title>phaze: {{script}}</title>"));
    }

    #[test]
    fn the_same_result_gives_the_same_bytes() {
        assert_eq!(page_of("gpt2-xl"), page_of("gpt2-xl"));
    }
}
