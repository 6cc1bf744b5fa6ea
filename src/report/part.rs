//! What one part takes of silicon, watts and money by the model, beside what is public of it.

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::quantity::grouped;
use super::quantity::percent;
use crate::hardware::Design;
use crate::hardware::Physics;
use crate::hardware::chip::Carbon;
use crate::hardware::chip::LinkTier;
use crate::hardware::chip::Making;
use crate::hardware::chip::OverBudget;
use crate::hardware::chip::Ownership;
use crate::hardware::chip::Package;
use crate::hardware::chip::PartFigures;
use crate::hardware::chip::PublishedFigures;
use crate::hardware::chip::Sourced;
use crate::hardware::technology::Constant;
use crate::units::Area;
use crate::units::Money;
use crate::units::Power;

/// A part that is to be shown.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Its knobs.
    pub design: &'a Design,
    /// Its constants.
    pub physics: &'a Physics,
    /// How it is made, where its file says enough.
    pub making: Option<&'a Making>,
    /// What is public of it.
    pub published: &'a PublishedFigures,
}

/// What follows from how a part is made.
struct Modelled<'a> {
    making: &'a Making,
    figures: PartFigures,
    links: Vec<(u64, LinkTier)>,
    /// What building, electricity and carbon count: the published power where there is one.
    drawn: Power,
    built: Ownership,
    bought: Ownership,
    carbon: Carbon,
}

impl Part<'_> {
    fn modelled(&self) -> Option<Result<Modelled<'_>, OverBudget>> {
        let making = self.making?;
        Some(making.figures(self.design, self.physics, self.published).map(|figures| {
            let technology = &making.technology;
            let links = LinkTier::of_network(&self.physics.network, making.links_gb_per_s);
            let published = self.published.tdp.as_ref().map(|tdp| tdp.value);
            let tdp = published.unwrap_or(figures.tdp.total());
            let memory = making.chip(self.design, self.physics).memory;
            let package = Package { dies: &making.lots(figures.silicon), memory };
            Modelled {
                making,
                built: Ownership::of_builder(&figures.cost, tdp, &links, technology),
                bought: Ownership::of_buyer(&figures.cost, tdp, &links, technology),
                carbon: Carbon::of(&package, tdp, technology),
                figures,
                links,
                drawn: tdp,
            }
        }))
    }
}

/// Die, power and cost, for people.
pub fn text(part: &Part, out: &mut dyn Write) -> io::Result<()> {
    match part.modelled() {
        None => {
            public_only(part.published, out)?;
            writeln!(
                out,
                "\nIts file does not say how it is made; a table [chip] with process_nm, memory, stacks \
                 and\nlinks_gb_per_s would tell its die, power and cost."
            )
        }
        Some(Err(reason)) => {
            public_only(part.published, out)?;
            writeln!(out, "\nIts die, power and cost are not modelled: {reason}.")
        }
        Some(Ok(found)) => modelled(&found, part.published, out),
    }
}

fn modelled(found: &Modelled, published: &PublishedFigures, out: &mut dyn Write) -> io::Result<()> {
    let figures = &found.figures;
    let nm = found.making.technology.process_nm;
    writeln!(out, "\n{:<28}{:>14}  published", format!("made in {nm} nm"), "model")?;
    silicon(found, published, out)?;
    let tdp = figures.tdp.total();
    let public = published.tdp.as_ref();
    line("design power", &watts(tdp), &beside(tdp.0, public, |w| w.0, |w| watts(*w)), out)?;
    parts(&figures.tdp.parts(), tdp.0, |power| power.0, |power| watts(*power), out)?;
    let peak = figures.peak.total();
    line("arrays always busy", &watts(peak), "", out)?;
    for (name, public) in
        [("mean power", &published.mean_power), ("highest power", &published.max_power)]
    {
        if let Some(public) = public {
            let shown = format!("{} ({})", watts(public.value), public.source);
            line(name, "", &shown, out)?;
        }
    }
    let cost = figures.cost.total();
    let public = published.cost.as_ref();
    line("cost of making", &dollars(cost), &beside(cost.0, public, |c| c.0, |c| dollars(*c)), out)?;
    parts(&figures.cost.parts(), cost.0, |money| money.0, |money| dollars(*money), out)?;
    owning(found, published, out)
}

/// The die and its parts, or the dies that are given.
fn silicon(found: &Modelled, published: &PublishedFigures, out: &mut dyn Write) -> io::Result<()> {
    if let Some(die) = &found.figures.die {
        let whole = die.total();
        let differs = compared(whole.0, published.die.as_ref().map(|die| die.value.0));
        line("die", &millimetres(whole), &of_area(published, &differs), out)?;
        parts(&die.parts(), whole.0, |area| area.0, |area| millimetres(*area), out)?;
        let reticle = found.making.technology.reticle();
        if whole > reticle {
            writeln!(out, "  no reticle holds it: {} are the most", millimetres(reticle))?;
        }
        return Ok(());
    }
    let dies = found.making.dies.iter().map(|die| {
        let nm = die.technology.process_nm;
        format!("{} of {} in {nm} nm", die.count, millimetres(die.area))
    });
    let dies = dies.collect::<Vec<_>>().join(", ");
    line("dies, not modelled", &millimetres(found.figures.silicon), &dies, out)
}

/// What it costs to own, and its carbon.
fn owning(found: &Modelled, published: &PublishedFigures, out: &mut dyn Write) -> io::Result<()> {
    let technology = &found.making.technology;
    let thousandths = |constant| technology.value(constant) as f64 / 1e3;
    let margin = thousandths(Constant::Margin);
    let price = found.figures.cost.bought(technology);
    let public = published.price.as_ref();
    let shown = beside(price.0, public, |c| c.0, |c| dollars(*c));
    line(&format!("price at {} margin", percent(margin)), &dollars(price), &shown, out)?;
    writeln!(
        out,
        "\nowned for {} years              built        bought",
        thousandths(Constant::Years)
    )?;
    for ((name, built), (_, bought)) in found.built.parts().into_iter().zip(found.bought.parts()) {
        writeln!(out, "  {name:<24}{:>12}  {:>12}", dollars(built), dollars(bought))?;
    }
    let (built, bought) = (found.built.total(), found.bought.total());
    writeln!(out, "  {:<24}{:>12}  {:>12}", "in all", dollars(built), dollars(bought))?;
    for (gb_per_s, tier) in &found.links {
        let (name, price) = match tier {
            LinkTier::ScaleUp => ("inside nodes or along a torus", Constant::ScaleUpLink),
            LinkTier::ScaleOut => ("between nodes", Constant::ScaleOutLink),
        };
        let price = Money(technology.value(price));
        writeln!(out, "  links {name}: {gb_per_s} GB/s at {} per GB/s", dollars(price))?;
    }
    writeln!(out, "  building and electricity are for {}", watts(found.drawn))?;
    let volume = grouped(technology.value(Constant::Volume));
    writeln!(out, "  masks are spread over {volume} chips; a buyer pays them with the chip")?;
    let kilograms = |grams: u64| format!("{:.1} kg", grams as f64 / 1e3);
    writeln!(
        out,
        "carbon: {} for the silicon, {} for the memory, {} in use",
        kilograms(found.carbon.dies),
        kilograms(found.carbon.memory),
        kilograms(found.carbon.used)
    )
}

fn public_only(published: &PublishedFigures, out: &mut dyn Write) -> io::Result<()> {
    let area = |f: &Sourced<Area>| (millimetres(f.value), f.source.clone());
    let power = |f: &Sourced<Power>| (watts(f.value), f.source.clone());
    let money = |f: &Sourced<Money>| (dollars(f.value), f.source.clone());
    let known = [
        ("die", published.die.as_ref().map(area)),
        ("die, less than", published.die_below.as_ref().map(area)),
        ("design power", published.tdp.as_ref().map(power)),
        ("mean power", published.mean_power.as_ref().map(power)),
        ("highest power", published.max_power.as_ref().map(power)),
        ("cost of making", published.cost.as_ref().map(money)),
        ("price", published.price.as_ref().map(money)),
    ];
    if known.iter().any(|(_, figure)| figure.is_some()) {
        writeln!(out, "\npublished")?;
    }
    for (name, figure) in known {
        if let Some((value, source)) = figure {
            writeln!(out, "  {name:<26}{value:>14}  ({source})")?;
        }
    }
    Ok(())
}

fn line(name: &str, model: &str, published: &str, out: &mut dyn Write) -> io::Result<()> {
    let row = format!("{name:<28}{model:>14}  {published}");
    writeln!(out, "{}", row.trim_end())
}

/// Each part with its share.
fn parts<T>(
    parts: &[(&str, T)],
    whole: u64,
    count: impl Fn(&T) -> u64,
    show: impl Fn(&T) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (name, part) in parts {
        let share = percent(count(part) as f64 / whole.max(1) as f64);
        writeln!(out, "  {name:<26}{:>14} {share:>8}", show(part))?;
    }
    Ok(())
}

/// A published figure with its source and by how much the model differs.
fn beside<T>(
    model: u64,
    published: Option<&Sourced<T>>,
    count: impl Fn(&T) -> u64,
    show: impl Fn(&T) -> String,
) -> String {
    published.map_or_else(String::new, |found| {
        let differs = compared(model, Some(count(&found.value)));
        format!("{}, {differs} ({})", show(&found.value), found.source)
    })
}

/// By how much the model is above or below.
fn compared(model: u64, published: Option<u64>) -> String {
    let Some(published) = published else { return String::new() };
    let more = (model as f64 / published.max(1) as f64 - 1.0) * 100.0;
    format!("model {more:+.1} %")
}

/// The published die, or what it is below.
fn of_area(published: &PublishedFigures, differs: &str) -> String {
    match (&published.die, &published.die_below) {
        (Some(die), _) => format!("{}, {differs} ({})", millimetres(die.value), die.source),
        (None, Some(below)) => {
            format!("less than {} ({})", millimetres(below.value), below.source)
        }
        (None, None) => String::new(),
    }
}

fn millimetres(area: Area) -> String {
    format!("{:.1} mm²", area.square_millimetres())
}

fn watts(power: Power) -> String {
    format!("{:.1} W", power.watts())
}

fn dollars(money: Money) -> String {
    format!("${}", grouped((money.0 + 50) / 100))
}

/// The same for programs; null where nothing is known.
pub fn value(part: &Part) -> Value {
    let published = published_value(part.published);
    match part.modelled() {
        None => json!({ "modelled": null, "published": published }),
        Some(Err(reason)) => json!({
            "modelled": null,
            "not_modelled_because": reason.to_string(),
            "published": published,
        }),
        Some(Ok(found)) => json!({ "modelled": modelled_value(&found), "published": published }),
    }
}

fn modelled_value(found: &Modelled) -> Value {
    let figures = &found.figures;
    let key = |name: &str| name.replace([' ', '-'], "_").replace(',', "");
    let named = |parts: Vec<(&str, f64)>| -> serde_json::Map<String, Value> {
        parts.into_iter().map(|(name, value)| (key(name), json!(value))).collect()
    };
    let mm2 = |parts: Vec<(&'static str, Area)>| {
        named(parts.into_iter().map(|(name, part)| (name, part.square_millimetres())).collect())
    };
    let watts = |parts: Vec<(&'static str, Power)>| {
        named(parts.into_iter().map(|(name, part)| (name, part.watts())).collect())
    };
    let dollars = |parts: &[(&'static str, Money)]| {
        named(parts.iter().map(|(name, part)| (*name, part.dollars())).collect())
    };
    let technology = &found.making.technology;
    let links = found.links.iter().map(|(gb_per_s, tier)| {
        let (tier, price) = match tier {
            LinkTier::ScaleUp => ("scale_up", Constant::ScaleUpLink),
            LinkTier::ScaleOut => ("scale_out", Constant::ScaleOutLink),
        };
        let price = Money(technology.value(price)).dollars();
        json!({ "tier": tier, "gb_per_s": gb_per_s, "usd_per_gb_per_s": price })
    });
    json!({
        "process_nm": technology.process_nm,
        "die_mm2": figures.die.map(|die| die.total().square_millimetres()),
        "die_parts_mm2": figures.die.map(|die| mm2(die.parts())),
        "reticle_mm2": technology.reticle().square_millimetres(),
        "silicon_mm2": figures.silicon.square_millimetres(),
        "tdp_w": figures.tdp.total().watts(),
        "tdp_parts_w": watts(figures.tdp.parts()),
        "arrays_always_busy_w": figures.peak.total().watts(),
        "cost_usd": figures.cost.total().dollars(),
        "cost_parts_usd": dollars(&figures.cost.parts()),
        "price_usd": figures.cost.bought(technology).dollars(),
        "margin": technology.value(Constant::Margin) as f64 / 1e3,
        "links": links.collect::<Vec<Value>>(),
        "drawn_w": found.drawn.watts(),
        "owned_years": technology.value(Constant::Years) as f64 / 1e3,
        "owned_by_builder_usd": found.built.total().dollars(),
        "owned_by_builder_parts_usd": dollars(&found.built.parts()),
        "owned_by_buyer_usd": found.bought.total().dollars(),
        "owned_by_buyer_parts_usd": dollars(&found.bought.parts()),
        "carbon_g": {
            "dies": found.carbon.dies,
            "memory": found.carbon.memory,
            "used": found.carbon.used,
        },
    })
}

fn published_value(published: &PublishedFigures) -> Value {
    let figure = |value: Option<(f64, &String)>| {
        value.map(|(value, source)| json!({ "value": value, "source": source }))
    };
    let area = |found: &Option<Sourced<Area>>| {
        figure(found.as_ref().map(|found| (found.value.square_millimetres(), &found.source)))
    };
    let power = |found: &Option<Sourced<Power>>| {
        figure(found.as_ref().map(|found| (found.value.watts(), &found.source)))
    };
    let money = |found: &Option<Sourced<Money>>| {
        figure(found.as_ref().map(|found| (found.value.dollars(), &found.source)))
    };
    json!({
        "die_mm2": area(&published.die),
        "die_below_mm2": area(&published.die_below),
        "tdp_w": power(&published.tdp),
        "mean_w": power(&published.mean_power),
        "max_w": power(&published.max_power),
        "host_w": power(&published.host_power),
        "cost_usd": money(&published.cost),
        "price_usd": money(&published.price),
        "rent_usd_per_hour": money(&published.rent),
    })
}
