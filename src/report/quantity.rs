//! Numbers as people read them.

use crate::units::Bytes;
use crate::units::Time;

/// A whole number with a comma between thousands.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A sentence with its numbers grouped.
pub fn sentence(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[start..].find(|c: char| !c.is_ascii_digit());
        let end = digits.map_or(rest.len(), |length| start + length);
        out.push_str(&rest[..start]);
        // What follows a point is a fraction.
        let number: Option<u128> = rest[start..end].parse().ok().filter(|_| !out.ends_with('.'));
        out.push_str(&number.map_or_else(|| rest[start..end].to_owned(), grouped));
        rest = &rest[end..];
    }
    out + rest
}

/// A name without characters that steer a terminal or turn the direction of writing: they are
/// written as their code.
pub fn shown(name: &str) -> String {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if steers(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
    }
    text
}

/// A size in the largest binary unit that leaves at least one whole.
pub fn bytes(size: Bytes) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = size.0 as f64;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), units[unit])
}

/// A value with its unit and the decimal prefix that leaves one to three digits before the point.
pub fn si(value: f64, unit: &str) -> String {
    let prefixes = [
        (1e18, "E"),
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
        (1e-12, "p"),
        (1e-15, "f"),
    ];
    let found = prefixes.iter().find(|(scale, _)| value.abs() >= *scale * 0.9995);
    let (scale, prefix) = found.copied().unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", three_digits(value / scale))
}

/// A number without a unit, to six digits.
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e15).contains(&value.abs()) {
        return format!("{value:.5e}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "a logarithm of a float is small")]
    let before_point = value.abs().log10().floor() as i32 + 1;
    let decimals = usize::try_from(6 - before_point).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// A span of time.
pub fn time(span: Time) -> String {
    si(span.seconds(), "s")
}

/// Seconds as a planner reads them: long ones in minutes and hours.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 119.5 => si(s, "s"),
        s if s < 7170.0 => format!("{} min", three_digits(s / 60.0)),
        s => format!("{} h", three_digits(s / 3600.0)),
    }
}

/// A paragraph in lines of at most `width` characters, as far as its words allow.
pub fn wrapped(paragraph: &str, width: usize) -> String {
    let mut text = String::with_capacity(paragraph.len());
    let mut used = 0;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text
}

/// A share of one as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_sentence_are_grouped() {
        assert_eq!(
            sentence("of 29360 designs, 12 x 0.12345 %"),
            "of 29,360 designs, 12 x 0.12345 %"
        );
        assert_eq!(sentence("none"), "none");
        assert_eq!(sentence("1234"), "1,234");
    }

    #[test]
    fn a_name_cannot_steer_a_terminal() {
        assert_eq!(shown("gpt2-xl é 名"), "gpt2-xl é 名");
        assert_eq!(shown("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\\u{d}\\u{a}");
        assert_eq!(shown("\u{202e}txt\u{9b}"), "\\u{202e}txt\\u{9b}");
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(grouped(0_u64), "0");
        assert_eq!(grouped(29_360_u64), "29,360");
        assert_eq!(grouped(1_234_567_u64), "1,234,567");
        assert_eq!(bytes(Bytes(128 << 20)), "128 MiB");
        assert_eq!(bytes(Bytes(1000)), "1000 B");
        assert_eq!(si(2.753e14, "FLOP/s"), "275 TFLOP/s");
        assert_eq!(si(0.0, "s"), "0 s");
        assert_eq!(plain(0.824_272_900), "0.824273");
        assert_eq!(plain(1_323_040.0), "1323040");
        assert_eq!(plain(12.5), "12.5");
        assert_eq!(plain(2.5e-9), "2.50000e-9");
        assert_eq!(time(Time(1_234_567)), "1.23 µs");
        assert_eq!(percent(0.98765), "98.8 %");
    }

    #[test]
    fn long_times_are_in_minutes_and_hours() {
        let cases = [(2.5e-3, "2.5 ms"), (100.0, "100 s"), (150.0, "2.5 min"), (9000.0, "2.5 h")];
        for (seconds, said) in cases {
            assert_eq!(span(seconds), said);
        }
    }

    #[test]
    fn a_paragraph_keeps_its_words_and_its_width() {
        let paragraph = "none of these words is longer than a line of twenty";
        let lines = wrapped(paragraph, 20);
        assert!(lines.lines().all(|line| line.chars().count() <= 20), "{lines}");
        assert_eq!(lines.replace('\n', " "), paragraph);
        assert_eq!(wrapped("unbreakable", 4), "unbreakable");
    }
}
