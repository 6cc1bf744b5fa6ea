//! Words of a planner: `256xh100-sxm`, `8..1024xh100-sxm`, `30d`.

use super::DeviceRange;
use crate::input::InputError;
use crate::input::decimal::Decimal;
use crate::input::numbers::Field;
use crate::plan::Job;

/// Reads numbers of devices and what they are: `256xh100-sxm`, `8..1024xh100-sxm`.
///
/// # Errors
/// What is no number of devices, none at all, or more than can be counted with.
pub fn read_devices(text: &str, file: &str) -> Result<(DeviceRange, String), InputError> {
    let field = Field::new(file, "devices");
    let allowed = "give a number and an accelerator such as 256xh100-sxm, or 8..1024xh100-sxm";
    let wrong = |problem: &str| field.value(text, problem, allowed);
    let (numbers, hardware) = text.split_once('x').ok_or_else(|| wrong("has no `x`"))?;
    let number = |text: &str| {
        let digits = text.replace(['_', ','], "");
        digits.parse::<u64>().map_err(|_| wrong("does not begin with a number of devices"))
    };
    let (least, most) = match numbers.split_once("..") {
        Some((least, most)) => (number(least)?, number(most)?),
        None => (number(numbers)?, number(numbers)?),
    };
    if hardware.is_empty() {
        return Err(wrong("names no accelerator"));
    }
    for devices in [least, most] {
        field.whole(devices, 1, Job::LARGEST_COUNT)?;
    }
    if least > most {
        return Err(wrong("ends before it begins"));
    }
    Ok((DeviceRange { least, most }, hardware.to_owned()))
}

/// Letters of spans of time, in seconds.
const LETTERS: [(char, u64); 4] = [('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];

/// Reads a span of time: `30d`, `12h`, `1.5w`.
///
/// # Errors
/// What is no span, or none at all.
pub fn read_seconds(text: &str, file: &str) -> Result<u64, InputError> {
    let field = Field::new(file, "time");
    let lettered = |&(letter, seconds): &(char, u64)| Some((text.strip_suffix(letter)?, seconds));
    let found = LETTERS.iter().find_map(lettered).and_then(|(number, seconds)| {
        let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number = number.parse::<f64>().ok().filter(|_| plain && !number.is_empty())?;
        let thousandths = Decimal::of(number)?.nearest(3)?;
        thousandths.checked_mul(seconds).map(|product| product / 1000)
    });
    let century = 100 * 366 * 86_400;
    found.filter(|seconds| (1..=century).contains(seconds)).ok_or_else(|| {
        let allowed = "give a number of minutes, hours, days or weeks such as 12h, 30d or 2w";
        field.value(text, "is no span of time", allowed)
    })
}

/// A number of an option within limits, in a unit `factor` times smaller; nothing where none is given.
///
/// # Errors
/// That it is outside.
pub fn read_scaled(
    option: &str,
    value: Option<f64>,
    factor: f64,
    (low, high): (f64, f64),
) -> Result<Option<u64>, InputError> {
    let field = Field::new(option, option.trim_start_matches('-'));
    value.map(|value| field.scaled(value, factor, low, high)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_a_number_or_a_range_and_what_they_are() {
        let read = |text| read_devices(text, "--gpus");
        assert_eq!(read("256xh100-sxm"), Ok((DeviceRange::only(256), "h100-sxm".into())));
        let range = DeviceRange { least: 8, most: 1024 };
        assert_eq!(read("8..1,024xmy/chip.toml"), Ok((range, "my/chip.toml".into())));
        for (text, said) in [
            ("0xh100-sxm", "out of range"),
            ("h100-sxm", "does not begin with a number"),
            ("256", "has no `x`"),
            ("256x", "names no accelerator"),
            ("-8xh100-sxm", "does not begin with a number"),
            ("64..8xh100-sxm", "ends before it begins"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn spans_of_time_have_a_letter() {
        assert_eq!(read_seconds("30d", "--deadline"), Ok(2_592_000));
        assert_eq!(read_seconds("1.5h", "--deadline"), Ok(5400));
        for text in ["30", "d", "0d", "-3d", "xd", "1e9d", "99999999w"] {
            assert!(read_seconds(text, "--deadline").is_err(), "{text}");
        }
    }
}
