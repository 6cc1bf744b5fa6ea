//! What a problem over chips that asks something else of an objective says as the objective itself does.

/// In an `impl BoxProblem` of something with a field `objective`: the grid, which knobs have laws and which of
/// them bounds do not see; and of the methods that are named, what the objective says.
macro_rules! passed_on {
    ($($method:ident),*) => {
        type Found = Vec<crate::strategy::Chosen>;

        fn lens(&self) -> [u16; crate::hardware::chip::N_CHIP_KNOBS] {
            self.objective.lens()
        }
        fn proved(&self) -> [bool; crate::hardware::chip::N_CHIP_KNOBS] {
            self.objective.proved()
        }
        fn blind(&self) -> [bool; crate::hardware::chip::N_CHIP_KNOBS] {
            self.objective.blind()
        }
        fn kin(&self, point: &super::ChipPoint) -> Option<u64> {
            self.objective.kin(point)
        }
        fn settle(&self) {
            self.objective.settle();
        }
        $(passed_on!(@ $method);)*
    };
    (@ rises) => {
        fn rises(&self) -> bool {
            self.objective.rises()
        }
    };
    (@ fits) => {
        fn fits(&self, point: &super::ChipPoint) -> bool {
            self.objective.fits(point)
        }
    };
}

pub(super) use passed_on;
