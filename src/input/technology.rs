//! Technology files: what silicon, watts and dollars cost in a process, each constant with where it is
//! from.

use toml::Table;
use toml::Value;

use super::InputError;
use super::numbers::Field;
use super::numbers::syntax;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Generation;
use crate::hardware::technology::Mark;
use crate::hardware::technology::MemoryConstant;
use crate::hardware::technology::MemoryGeneration;
use crate::hardware::technology::Origin;
use crate::hardware::technology::Technology;
use crate::hardware::technology::VoltageTable;

/// The built-in processes, in nanometres.
const PROCESSES: [(u64, &str); 4] = [
    (3, include_str!("../../inputs/technology/3nm.toml")),
    (5, include_str!("../../inputs/technology/5nm.toml")),
    (7, include_str!("../../inputs/technology/7nm.toml")),
    (16, include_str!("../../inputs/technology/16nm.toml")),
];

/// What does not depend on the process.
const BASE: &str = include_str!("../../inputs/technology/base.toml");

/// The process of searched chips where nobody says.
pub const DEFAULT_PROCESS: u64 = 5;

/// The built-in processes, in nanometres, ascending.
pub fn processes() -> impl Iterator<Item = u64> {
    PROCESSES.iter().map(|(nm, _)| *nm)
}

/// The built-in technology of a process; one without a table is answered with the nearest that has
/// one. `place` is what held the number, such as an option.
pub fn of_process(nm: u64, place: &str, field: &str) -> Result<Technology, InputError> {
    if let Some((_, text)) = PROCESSES.iter().find(|(known, _)| *known == nm) {
        return technology(text, &format!("{nm}nm.toml"));
    }
    let known: Vec<String> = processes().map(|nm| nm.to_string()).collect();
    let nearest = processes().min_by_key(|known| known.abs_diff(nm)).unwrap_or(DEFAULT_PROCESS);
    Err(Field::new(place, field).value(
        &nm.to_string(),
        "is a process without a table",
        &format!("nearest is {nearest}; known are {} (nm)", known.join(", ")),
    ))
}

/// Reads the text of a technology file that goes by the name `file`; what it leaves out is as in the
/// built-in base.
pub fn technology(text: &str, file: &str) -> Result<Technology, InputError> {
    let base = Source { table: parsed(BASE, "base.toml")?, file: "base.toml" };
    let own = Source { table: parsed(text, file)?, file };
    for source in [&base, &own] {
        source.knows_all_names()?;
    }
    let sources = [own, base];
    let process = Field::new(file, "process_nm");
    let nm = match sources[0].table.get("process_nm") {
        None => return Err(process.missing("give the name of the process in nm, such as 5")),
        Some(found) => whole(found, &process, 1, 1000)?,
    };
    let mut values = Vec::new();
    for row in &Constant::ROWS {
        let (low, high) = (*row.range.start(), *row.range.end());
        values.push(constant(&sources, row.name, (row.factor, low, high), row.unit)?);
    }
    let memories = memories(&sources)?;
    let voltages = voltages(&sources)?;
    let of = |constant: Constant| values[constant as usize].clone();
    Ok(Technology::new(nm, of, voltages, memories))
}

/// The generation of off-chip memory that a user calls so; an unknown one is answered with the known
/// ones.
pub fn generation(
    technology: &Technology,
    name: &str,
    place: &str,
) -> Result<Generation, InputError> {
    technology.generation(name).ok_or_else(|| InputError::Unknown {
        file: place.to_owned(),
        what: "generation of memory".into(),
        found: name.to_owned(),
        known: technology.memories().iter().map(|memory| memory.name.clone()).collect(),
    })
}

/// A file and what stands in it.
struct Source<'a> {
    table: Table,
    file: &'a str,
}

impl Source<'_> {
    /// What stands under a name of tables and a key.
    fn find(&self, name: &str) -> Option<&Value> {
        let (tables, key) = name.rsplit_once('.')?;
        let table =
            tables.split('.').try_fold(&self.table, |table, name| table.get(name)?.as_table())?;
        table.get(key)
    }

    /// Refuses names that mean nothing.
    fn knows_all_names(&self) -> Result<(), InputError> {
        let unknown = |what: &str, found: &str, known: Vec<String>| InputError::Unknown {
            file: self.file.to_owned(),
            what: what.to_owned(),
            found: found.to_owned(),
            known,
        };
        let tables = ["node", "area", "edge", "power", "voltage", "cost", "carbon", "budget"];
        for (name, value) in &self.table {
            match (name.as_str(), value) {
                ("process_nm", _) | ("voltage", Value::Table(_)) => {}
                ("memory", Value::Table(generations)) => {
                    let keys = MemoryConstant::ROWS.map(|row| row.1.to_owned()).to_vec();
                    for (generation, constants) in generations {
                        let found = constants.as_table().into_iter().flat_map(Table::keys);
                        let stranger = found.into_iter().find(|key| !keys.contains(key));
                        if let Some(key) = stranger {
                            let what = format!("key of [memory.{generation}]");
                            return Err(unknown(&what, key, keys));
                        }
                    }
                }
                (table, Value::Table(constants)) if tables.contains(&table) => {
                    for key in constants.keys() {
                        let name = format!("{table}.{key}");
                        if Constant::named(&name).is_none() {
                            let own = |row: &&str| row.split('.').next() == Some(table);
                            let known = Constant::ROWS.iter().map(|row| row.name).filter(own);
                            let known = known.map(str::to_owned).collect();
                            return Err(unknown("constant", &name, known));
                        }
                    }
                }
                (other, _) => {
                    let mut known = tables.map(str::to_owned).to_vec();
                    known.extend(["memory".to_owned(), "process_nm".to_owned()]);
                    return Err(unknown("table", other, known));
                }
            }
        }
        Ok(())
    }
}

fn parsed(text: &str, file: &str) -> Result<Table, InputError> {
    toml::from_str(text).map_err(|error| syntax(&error, text, file))
}

/// A constant in its small unit, with where it is from: from the first file that has it.
fn constant(
    sources: &[Source],
    name: &str,
    (factor, low, high): (f64, f64, f64),
    unit: &str,
) -> Result<(u64, Origin), InputError> {
    let found = sources.iter().find_map(|source| Some((source, source.find(name)?)));
    let form = format!(
        "give {{ value = …, mark = \"pub\", source = \"…\" }}{}",
        if unit.is_empty() { String::new() } else { format!(", the value in {unit}") }
    );
    let Some((source, found)) = found else {
        return Err(Field::new(sources[0].file, name).missing(&form));
    };
    let field = |key: &str| Field::new(source.file, &format!("{name}.{key}"));
    let Value::Table(found) = found else {
        let field = Field::new(source.file, name);
        return Err(field.value(&found.to_string(), "does not say where it is from", &form));
    };
    let value = match found.get("value") {
        Some(Value::Integer(value)) => *value as f64,
        Some(Value::Float(value)) => *value,
        Some(other) => {
            return Err(field("value").value(&other.to_string(), "is no number", &form));
        }
        None => return Err(field("value").missing(&form)),
    };
    let value = field("value").scaled(value, factor, low, high)?;
    if let Some(key) = found.keys().find(|key| !["value", "mark", "source"].contains(&key.as_str()))
    {
        return Err(field(key).value(&found[key].to_string(), "means nothing here", &form));
    }
    Ok((value, origin(found, source.file, name)?))
}

/// Where the constant of a table is from.
fn origin(found: &Table, file: &str, name: &str) -> Result<Origin, InputError> {
    let field = |key: &str| Field::new(file, &format!("{name}.{key}"));
    let marks = "allowed are \"pub\" (public), \"cal\" (calibrated), \"asm\" (assumed), \"rec\" \
                 (recalled)";
    let word = found.get("mark").ok_or_else(|| field("mark").missing(marks))?;
    let mark = Mark::ALL.iter().find(|(known, _)| word.as_str() == Some(known));
    let mark = mark.ok_or_else(|| field("mark").value(&word.to_string(), "is no mark", marks))?.1;
    let source = found.get("source").and_then(Value::as_str).filter(|text| !text.is_empty());
    let source = source.ok_or_else(|| field("source").missing("say where it is from"))?;
    Ok(Origin { mark, source: source.to_owned() })
}

/// Every generation that a file has.
fn memories(sources: &[Source]) -> Result<Vec<MemoryGeneration>, InputError> {
    let mut names = Vec::new();
    for source in sources.iter().rev() {
        let found = source.table.get("memory").and_then(Value::as_table);
        for name in found.into_iter().flat_map(Table::keys) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let mut memories = Vec::new();
    for name in names {
        let mut values = Vec::new();
        for (_, key, unit, factor, [low, high]) in MemoryConstant::ROWS {
            let name = format!("memory.{name}.{key}");
            values.push(constant(sources, &name, (factor, low, high), unit)?);
        }
        let values = values.try_into().expect("there is a value for each row");
        memories.push(MemoryGeneration::new(name, values));
    }
    Ok(memories)
}

/// The supply by clock.
fn voltages(sources: &[Source]) -> Result<VoltageTable, InputError> {
    let found = sources.iter().find(|source| source.table.contains_key("voltage"));
    let source = found.expect("the base has a table of supplies");
    let field = |key: &str| Field::new(source.file, &format!("voltage.{key}"));
    let table = source.table["voltage"].as_table().expect("it was seen to be a table");
    let number = |key: &str| match table.get(key) {
        Some(found) => whole(found, &field(key), 1, 100_000),
        None => Err(field(key).missing("give thousandths of the nominal clock")),
    };
    let supplies = match table.get("supply").and_then(Value::as_array) {
        Some(list) => list
            .iter()
            .map(|found| whole(found, &field("supply"), 1, 10_000))
            .collect::<Result<Vec<u64>, _>>()?,
        None => return Err(field("supply").missing("give a list of supplies, ascending")),
    };
    let known = ["mark", "source", "first_clock", "clock_step", "supply"];
    if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
        let known = known.join(", ");
        return Err(field(key).value(
            &table[key].to_string(),
            "means nothing here",
            &format!("allowed are {known}"),
        ));
    }
    let origin = origin(table, source.file, "voltage")?;
    let (first, step) = (number("first_clock")?, number("clock_step")?);
    VoltageTable::new(first, step, supplies, origin).ok_or_else(|| {
        field("supply").value("a list that falls or is empty", "is no table", "give it ascending")
    })
}

/// A whole number within a range.
fn whole(found: &Value, field: &Field, low: u64, high: u64) -> Result<u64, InputError> {
    let number = found.as_integer().and_then(|found| u64::try_from(found).ok());
    let number = number.ok_or_else(|| {
        let allowed = format!("allowed are whole numbers from {low} to {high}");
        field.value(&found.to_string(), "is no whole number", &allowed)
    })?;
    field.whole(number, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_can_be_read_and_every_constant_has_a_source() {
        for nm in processes() {
            let found = of_process(nm, "--process", "process").unwrap();
            assert_eq!(found.process_nm, nm);
            for row in &Constant::ROWS {
                assert!(found.origin(row.constant).source.len() > 5, "{nm}: {}", row.name);
            }
            for memory in found.memories() {
                for (constant, ..) in MemoryConstant::ROWS {
                    assert!(memory.origin(constant).source.len() > 5, "{}", memory.name);
                }
            }
            let names: Vec<&str> = found.memories().iter().map(|m| m.name.as_str()).collect();
            assert_eq!(names, ["hbm2", "hbm2e", "hbm3", "hbm3e", "hbm3e12", "hbm4"]);
        }
    }

    #[test]
    fn assumptions_are_told_from_what_is_known() {
        let found = of_process(5, "", "").unwrap();
        let assumed: Vec<Constant> = found.assumptions().collect();
        assert!(assumed.contains(&Constant::TopLevel) && !assumed.contains(&Constant::Wafer));
        let hbm3e = found.generation("hbm3e").unwrap();
        let assumed: Vec<MemoryConstant> = found.memory_assumptions(hbm3e).collect();
        let expected = [MemoryConstant::Phy, MemoryConstant::Controller, MemoryConstant::Energy];
        assert_eq!(assumed, expected);
    }

    #[test]
    fn a_process_without_a_table_is_answered_with_the_nearest() {
        for (nm, nearest) in [(4, "nearest is 3"), (6, "nearest is 5"), (28, "nearest is 16")] {
            let error = of_process(nm, "--process", "process").unwrap_err().to_string();
            assert!(error.contains(nearest) && error.contains("3, 5, 7, 16"), "{error}");
        }
        let technology = of_process(5, "", "").unwrap();
        let error = generation(&technology, "hbm3f", "--memory").unwrap_err().to_string();
        assert!(error.contains("did you mean `hbm3`"), "{error}");
    }

    #[test]
    fn a_file_replaces_what_it_names_and_nothing_else() {
        let text = format!(
            "{}\n[cost]\nmargin = {{ value = 0.5, mark = \"asm\", source = \"own bargain\" }}\n\
             [memory.hbm9]\n{}",
            PROCESSES[1].1,
            MemoryConstant::ROWS
                .map(|row| format!(
                    "{} = {{ value = 99, mark = \"asm\", source = \"my guess\" }}\n",
                    row.1
                ))
                .concat()
        );
        let (own, plain) = (technology(&text, "own.toml").unwrap(), of_process(5, "", "").unwrap());
        assert_eq!(own.value(Constant::Margin), 500);
        assert_eq!(own.value(Constant::Years), plain.value(Constant::Years));
        let memory = own.memory(own.generation("hbm9").unwrap());
        assert_eq!(memory.value(MemoryConstant::Rate), 99_000);
    }

    #[test]
    fn errors_name_the_file_and_the_constant() {
        let good = PROCESSES[1].1;
        let cases = [
            ("process_nm = 5", "process_nm = 0", "`process_nm = 0` is out of range"),
            ("process_nm = 5", "", "`process_nm` is missing"),
            ("value = 16988", "value = -3", "`node.wafer_usd.value = -3` is out of range"),
            ("value = 16988", "value = \"x\"", "is no number"),
            ("value = 16988, mark = \"pub\"", "value = 1000, mark = \"fun\"", "is no mark"),
            ("wafer_usd", "waffer_usd", "did you mean `node.wafer_usd`"),
            ("[node]", "[nodes]", "did you mean `node`"),
            ("[node]", "[memory.hbm5]\ngib = 3\n[node]", "does not say where it is from"),
            ("[node]", "[memory.hbm5]\ngig = 3\n[node]", "unknown key of [memory.hbm5] `gig`"),
            ("[node]", "[voltage]\nsupply = [3, 2]\n[node]", "`voltage.mark` is missing"),
        ];
        for (from, to, expected) in cases {
            assert!(good.contains(from), "{from}");
            let error =
                technology(&good.replacen(from, to, 1), "own.toml").unwrap_err().to_string();
            assert!(error.starts_with("own.toml: ") && error.contains(expected), "{error}");
        }
    }
}
