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
    /// Devices that hold all experts together, each part of them once, where there are experts: they
    /// are numbered along a grid of their own, laid over the same devices of each rank.
    pub expert_devices: Option<u64>,
}

impl Grid {
    /// How many devices the grid takes.
    pub fn devices(&self) -> u64 {
        self.tensor * self.context * self.data * self.pipeline
    }

    /// How many devices each rank of all pipelines has.
    pub fn rank_devices(&self) -> u64 {
        self.tensor * self.context * self.data
    }

    /// How many devices there are along an axis; one along an axis that this grid does not have.
    pub fn degree(&self, axis: Axis) -> u64 {
        match axis {
            Axis::Tensor => self.tensor,
            Axis::Context => self.context,
            Axis::Data => self.data,
            Axis::Pipeline => self.pipeline,
            Axis::Expert | Axis::ExpertGroup | Axis::ExpertTensor => 1,
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

    /// The devices that hold the same experts; one alone where there are none.
    ///
    /// In the grid of experts, those that hold all of them together take the place of the tensor and
    /// the context axis, and their replicas that of the data axis.
    pub fn expert_replicas(self, grid: &Grid) -> Group {
        let Some(owners) = grid.expert_devices else { return Group::ALONE };
        Group::along(grid.rank_devices() / owners, self.expert_stride(grid))
    }

    /// How many device numbers lie between neighbours of those that hold the same experts.
    pub fn expert_stride(self, grid: &Grid) -> u64 {
        let between = if self.ranks_lie_inside_data() { grid.pipeline } else { 1 };
        grid.expert_devices.unwrap_or(1).saturating_mul(between)
    }

    /// Whether both grids give every rank the same devices: the experts of each rank are held
    /// equally often, and neighbouring ranks are as far apart in one grid as in the other.
    pub fn folds(self, grid: &Grid) -> bool {
        let Some(owners) = grid.expert_devices else { return true };
        let inside = if self.ranks_lie_inside_data() { owners } else { grid.rank_devices() };
        grid.rank_devices().is_multiple_of(owners)
            && (grid.pipeline == 1 || self.stride(grid, Axis::Pipeline) == inside)
    }

    fn ranks_lie_inside_data(self) -> bool {
        let place = |axis: Axis| self.0.iter().position(|&at| at == axis);
        place(Axis::Pipeline) < place(Axis::Data)
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
            Axis::Expert | Axis::ExpertGroup => "ep",
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

    const GRID: Grid = Grid { tensor: 2, context: 3, data: 5, pipeline: 7, expert_devices: None };

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
    fn the_grid_of_experts_is_laid_over_the_devices_of_each_rank() {
        let grid = |owners| Grid {
            tensor: 2,
            context: 1,
            data: 8,
            pipeline: 2,
            expert_devices: Some(owners),
        };
        let [default, swapped] = Order::MEGATRON;
        for (owners, replicas) in [(8, Group::along(2, 8)), (16, Group::ALONE)] {
            assert!(default.folds(&grid(owners)) && !swapped.folds(&grid(owners)));
            assert_eq!(default.expert_replicas(&grid(owners)), replicas);
        }
        assert!(!default.folds(&grid(32)), "more than a rank has");
        assert!(default.folds(&grid(2)) && swapped.folds(&grid(2)));
        assert_eq!(swapped.expert_replicas(&grid(2)), Group::along(8, 4));
        let alone = Grid { pipeline: 1, ..grid(8) };
        assert!(swapped.folds(&alone), "one rank has all devices in every order");
        assert_eq!(swapped.expert_replicas(&alone), default.expert_replicas(&alone));
        let none = Grid { expert_devices: None, ..grid(1) };
        assert!(swapped.folds(&none) && default.expert_replicas(&none) == Group::ALONE);
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
