//! Time and cost against numbers of devices: the knee, and the cheapest within a deadline.

use super::Found;

/// The answer for one number of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// Devices at hand.
    pub devices: u64,
    /// What came of it; `None` where nothing fits.
    pub found: Option<Found>,
}

/// Answers for growing numbers of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// In the order of devices.
    pub points: Vec<CurvePoint>,
    /// The most seconds that a run may take, where a deadline was given.
    pub deadline: Option<f64>,
}

/// Of the speed that twice the devices should bring, the least part that they must bring to be worth
/// it: beyond the knee more than a tenth of what is added is lost.
const WORTH: f64 = 0.9;

impl Curve {
    /// The points on which something fits.
    pub fn fitting(&self) -> impl Iterator<Item = (u64, &Found)> {
        self.points.iter().filter_map(|point| Some((point.devices, point.found.as_ref()?)))
    }

    /// The largest number of devices up to which hours of devices have not grown by more than a
    /// tenth of the least; `None` where nothing fits.
    pub fn knee(&self) -> Option<u64> {
        let hours = |found: &Found| found.run.device_hours;
        let least = self.fitting().map(|(_, found)| hours(found)).fold(f64::INFINITY, f64::min);
        let worth = self.fitting().filter(|(_, found)| least >= WORTH * hours(found));
        worth.map(|(devices, _)| devices).max()
    }

    /// The number of devices that takes the fewest hours of devices of those that meet the
    /// deadline, the smaller of two that are equal; `None` where none does.
    pub fn cheapest(&self) -> Option<u64> {
        let deadline = self.deadline.unwrap_or(f64::INFINITY);
        let in_time = self.fitting().filter(|(_, found)| found.run.seconds <= deadline);
        let cheapest = in_time
            .min_by(|(_, one), (_, other)| one.run.device_hours.total_cmp(&other.run.device_hours));
        cheapest.map(|(devices, _)| devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::RunFigures;

    fn point(devices: u64, hours: Option<f64>) -> CurvePoint {
        let found = hours.map(|hours| Found {
            devices,
            strategy: String::new(),
            seconds_per_batch: hours,
            run: RunFigures {
                steps: 1,
                seconds: hours * 3600.0,
                device_hours: hours * devices as f64,
                dollars: None,
                kwh: None,
                kg_co2e: None,
                checkpoint_bytes: 0.0,
            },
        });
        CurvePoint { devices, found }
    }

    #[test]
    fn the_knee_is_the_last_number_before_a_tenth_of_the_hours_is_lost() {
        let points = vec![
            point(8, None),
            point(16, Some(100.0)),
            point(32, Some(51.0)),
            point(64, Some(27.5)),
            point(128, Some(20.0)),
        ];
        let curve = Curve { points, deadline: Some(40.0 * 3600.0) };
        assert_eq!(curve.knee(), Some(64));
        assert_eq!(curve.cheapest(), Some(64));
        let never = Curve { deadline: Some(1.0), ..curve.clone() };
        assert_eq!(never.cheapest(), None);
        let any = Curve { deadline: None, ..curve };
        assert_eq!(any.cheapest(), Some(16));
        let none = Curve { points: vec![point(8, None)], deadline: None };
        assert_eq!((none.knee(), none.cheapest()), (None, None));
    }
}
