//! Figures as planners read them: days, dollars, tonnes, each with its unit and none in kiloseconds.

use crate::report::quantity::grouped;

/// Seconds of an hour and of a day.
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// Three significant digits; from a thousand on, all digits before the point.
pub fn three(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 999.5 => return grouped(whole(value)),
        some if some >= 99.95 => 0,
        some if some >= 9.995 => 1,
        some if some >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// To the nearest whole number.
pub fn whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let whole = value.round() as u64;
    whole
}

/// A span of time, from milliseconds to years.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 800.0 * DAY => (s / (365.25 * DAY), "years"),
        s if s >= 2.0 * DAY => (s / DAY, "days"),
        s if s >= 2.0 * HOUR => (s / HOUR, "hours"),
        s if s >= 300.0 => (s / 60.0, "minutes"),
        s if s >= 1.0 => (s, "s"),
        s => (s * 1000.0, "ms"),
    };
    format!("{} {unit}", three(value))
}

/// Dollars, in thousands or millions where they are many.
pub fn dollars(value: f64) -> String {
    match value {
        many if many >= 1e9 => format!("${} billion", three(many / 1e9)),
        many if many >= 1e6 => format!("${} million", three(many / 1e6)),
        some if some >= 100.0 => format!("${}", grouped(whole(some))),
        few => format!("${few:.2}"),
    }
}

/// Kilowatt-hours, or megawatt-hours where they are many.
pub fn energy(kwh: f64) -> String {
    if kwh >= 1e4 { format!("{} MWh", three(kwh / 1e3)) } else { format!("{} kWh", three(kwh)) }
}

/// Kilograms of carbon dioxide, or tonnes where they are many.
pub fn carbon(kg: f64) -> String {
    if kg >= 1e3 { format!("{} t CO2e", three(kg / 1e3)) } else { format!("{} kg CO2e", three(kg)) }
}

/// Bytes on disks, which count by thousands.
pub fn disk(bytes: f64) -> String {
    if bytes >= 1e12 {
        format!("{} TB", three(bytes / 1e12))
    } else {
        format!("{} GB", three(bytes / 1e9))
    }
}

/// Tokens in the letters that planners use.
pub fn tokens(tokens: u64) -> String {
    let tokens = tokens as f64;
    match tokens {
        t if t >= 1e12 => format!("{} T tokens", three(t / 1e12)),
        t if t >= 1e9 => format!("{} B tokens", three(t / 1e9)),
        t if t >= 1e6 => format!("{} M tokens", three(t / 1e6)),
        t => format!("{} tokens", grouped(whole(t))),
    }
}

/// Parameters in billions or millions.
pub fn parameters(parameters: u64) -> String {
    let count = parameters as f64;
    if count >= 1e9 { format!("{:.2} B", count / 1e9) } else { format!("{:.1} M", count / 1e6) }
}

/// How much slower or faster: a percentage with its sign.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 0.05 { "as fast".into() } else { format!("{percent:+.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_in_kiloseconds() {
        for (seconds, said) in [
            (0.0123, "12.3 ms"),
            (9.684, "9.68 s"),
            (250.0, "250 s"),
            (36_500.0, "10.1 hours"),
            (3_000_000.0, "34.7 days"),
            (9e8, "28.5 years"),
            (999.7, "16.7 minutes"),
        ] {
            assert_eq!(duration(seconds), said);
        }
    }

    #[test]
    fn money_energy_and_carbon_have_their_units() {
        assert_eq!(dollars(1_234_567.0), "$1.23 million");
        assert_eq!(dollars(54_321.0), "$54,321");
        assert_eq!(dollars(9.5), "$9.50");
        assert_eq!(energy(1234.0), "1,234 kWh");
        assert_eq!(energy(123_456.0), "123 MWh");
        assert_eq!(carbon(45_600.0), "45.6 t CO2e");
        assert_eq!(disk(987e9), "987 GB");
        assert_eq!(tokens(2_000_000_000_000), "2.00 T tokens");
        assert_eq!(parameters(70_553_706_496), "70.55 B");
        assert_eq!((change(1.1), change(1.0)), ("+10.0 %".into(), "as fast".into()));
    }
}
