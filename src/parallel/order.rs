//! How devices are numbered: the grid of the axes' degrees, and the order of the axes in it.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::hardware::network::Group;
use crate::model::Axis;

/// How many devices there are along each axis; all of them together are their product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grid {
    /// Devices that share each layer.
    pub tensor: u64,
    /// Devices that share the tokens of each sequence.
    pub context: u64,
    /// Copies of the pipeline.
    pub data: u64,
    /// Ranks of a pipeline.
    pub pipeline: u64,
}

impl Grid {
    /// How many devices the grid takes.
    pub fn devices(&self) -> u64 {
        self.tensor * self.context * self.data * self.pipeline
    }

    /// How many devices there are along an axis; one along an axis that this grid does not have.
    pub fn degree(&self, axis: Axis) -> u64 {
        match axis {
            Axis::Tensor => self.tensor,
            Axis::Context => self.context,
            Axis::Data => self.data,
            Axis::Pipeline => self.pipeline,
            Axis::Expert | Axis::ExpertTensor => 1,
        }
    }
}

/// The order in which devices are numbered along the axes, the innermost first. Tensor parallelism
/// is always innermost: it exchanges most, and nothing can hide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Order([Axis; 3]);

impl Order {
    /// Every order, those that Megatron offers first.
    pub const ALL: [Self; 6] = [
        Self([Axis::Context, Axis::Data, Axis::Pipeline]),
        Self([Axis::Context, Axis::Pipeline, Axis::Data]),
        Self([Axis::Data, Axis::Context, Axis::Pipeline]),
        Self([Axis::Data, Axis::Pipeline, Axis::Context]),
        Self([Axis::Pipeline, Axis::Context, Axis::Data]),
        Self([Axis::Pipeline, Axis::Data, Axis::Context]),
    ];

    /// The two orders that Megatron offers, its default first.
    pub const MEGATRON: [Self; 2] = [Self::ALL[0], Self::ALL[1]];

    /// The axes, the innermost first.
    pub fn axes(self) -> [Axis; 4] {
        let [first, second, third] = self.0;
        [Axis::Tensor, first, second, third]
    }

    /// How many device numbers lie between neighbours along an axis.
    pub fn stride(self, grid: &Grid, axis: Axis) -> u64 {
        self.axes().into_iter().take_while(|&inner| inner != axis).map(|a| grid.degree(a)).product()
    }

    /// The devices that differ along these axes and agree along all others.
    pub fn group(self, grid: &Grid, axes: &[Axis]) -> Group {
        let along = |axis| Group::along(grid.degree(axis), self.stride(grid, axis));
        let asked = self.axes().into_iter().filter(|axis| axes.contains(axis));
        asked.map(along).fold(Group::ALONE, Group::both)
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::MEGATRON[0]
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |axis| match axis {
            Axis::Tensor => "tp",
            Axis::Context => "cp",
            Axis::Expert => "ep",
            Axis::ExpertTensor => "etp",
            Axis::Data => "dp",
            Axis::Pipeline => "pp",
        };
        f.write_str(&self.axes().map(short).join("-"))
    }
}

/// A text that is the name of no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{found}\" is no order of axes; allowed are {}", Order::ALL.map(|order| order.to_string()).join(", "))]
pub struct UnknownOrder {
    /// What was found.
    pub found: String,
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Self, UnknownOrder> {
        let known = Self::ALL.into_iter().find(|order| order.to_string() == name);
        known.ok_or_else(|| UnknownOrder { found: name.to_owned() })
    }
}

impl TryFrom<String> for Order {
    type Error = UnknownOrder;

    fn try_from(name: String) -> Result<Self, UnknownOrder> {
        name.parse()
    }
}

impl From<Order> for String {
    fn from(order: Order) -> Self {
        order.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { tensor: 2, context: 3, data: 5, pipeline: 7 };

    #[test]
    fn every_order_has_a_name_that_is_read_back() {
        let names = Order::ALL.map(|order| order.to_string());
        assert_eq!(names[..2], ["tp-cp-dp-pp", "tp-cp-pp-dp"]);
        for order in Order::ALL {
            assert_eq!(order.to_string().parse(), Ok(order));
            let text = serde_json::to_string(&order).unwrap();
            assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        }
        let error = "pp-tp".parse::<Order>().unwrap_err().to_string();
        assert!(error.contains("\"pp-tp\"") && error.contains("tp-dp-pp-cp"), "{error}");
        assert_eq!(Order::default(), Order::MEGATRON[0]);
    }

    #[test]
    fn an_axis_steps_over_the_axes_inside_it() {
        let strides = |order: Order| order.axes().map(|axis| order.stride(&GRID, axis));
        assert_eq!(strides(Order::MEGATRON[0]), [1, 2, 6, 30]);
        assert_eq!(strides(Order::MEGATRON[1]), [1, 2, 6, 42]);
        assert!(
            Order::ALL
                .iter()
                .all(|order| order.group(&GRID, &order.axes()) == Group::along(210, 1))
        );
    }

    #[test]
    fn a_group_of_two_axes_is_one_run_only_where_no_other_lies_between() {
        let replicas = [Axis::Context, Axis::Data];
        let [together, apart] = Order::MEGATRON.map(|order| order.group(&GRID, &replicas));
        assert_eq!(together, Group::along(15, 2));
        assert_eq!(apart, Group::both(Group::along(3, 2), Group::along(5, 42)));
        // An axis of one device takes no room between the others.
        let flat = Grid { pipeline: 1, ..GRID };
        assert_eq!(Order::MEGATRON[1].group(&flat, &replicas), Group::along(15, 2));
        assert_eq!(Order::default().group(&GRID, &[Axis::Expert]), Group::ALONE);
    }
}
