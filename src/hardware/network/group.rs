//! Which devices take part in an exchange.

/// The devices that take part: those that differ along one axis of the grid of devices, or along
/// two, and agree along all others.
///
/// Along one axis they are a *run*: so many devices, each a stride after the one before. Along two
/// they are a run of runs. The groups of one kind tile the devices in blocks; the time asked for is
/// that of the slowest of them. The stages of a pipeline are a group too: its sends go from one to
/// the next.
///
/// Invariant: the outer run, where there is one, has at least two members and does not continue the
/// inner one, so that the same devices are always the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    inner: Run,
    outer: Option<Run>,
}

/// Devices at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Run {
    /// How many devices.
    pub(super) size: u64,
    /// From one to the next, in device numbers. Never zero.
    pub(super) stride: u64,
}

impl Run {
    /// Device numbers that a run of this kind takes up.
    pub(super) fn block(self) -> u64 {
        self.size.saturating_mul(self.stride)
    }
}

impl Group {
    /// A device with nobody to talk to.
    pub const ALONE: Self = Self { inner: Run { size: 1, stride: 1 }, outer: None };

    /// `size` devices, each `stride` device numbers after the one before.
    pub fn along(size: u64, stride: u64) -> Self {
        if size <= 1 {
            return Self::ALONE;
        }
        Self { inner: Run { size, stride: stride.max(1) }, outer: None }
    }

    /// The devices that differ along the axis of `inner`, along that of `outer`, or along both.
    ///
    /// # Panics
    /// Where a member of `outer` would lie within a block of `inner`, and where three axes are
    /// joined none of which continues another: no grid of devices has such groups.
    pub fn both(inner: Self, outer: Self) -> Self {
        if inner.size() == 1 {
            return outer;
        }
        if outer.size() == 1 {
            return inner;
        }
        let last = inner.outer.unwrap_or(inner.inner);
        let next = outer.inner;
        assert!(
            next.stride >= last.block(),
            "an outer axis steps over whole blocks of an inner one"
        );
        let continues = next.stride == last.block();
        let joined = Run { size: last.size.saturating_mul(next.size), stride: last.stride };
        let runs = match (inner.outer.is_some(), continues) {
            (true, true) => [Some(inner.inner), Some(joined), outer.outer],
            (true, false) => [Some(inner.inner), inner.outer, Some(next)],
            (false, true) => [Some(joined), outer.outer, None],
            (false, false) => [Some(last), Some(next), outer.outer],
        };
        assert!(
            runs[2].is_none(),
            "a grid of four axes has at most two that do not continue each other"
        );
        Self { inner: runs[0].unwrap_or(last), outer: runs[1] }
    }

    /// How many devices take part.
    pub fn size(&self) -> u64 {
        self.outer.map_or(self.inner.size, |outer| outer.size.saturating_mul(self.inner.size))
    }

    /// Device numbers from the first of a group to the first of the next one that shares no block
    /// with it.
    #[cfg(test)]
    pub(super) fn block(&self) -> u64 {
        self.outer.unwrap_or(self.inner).block()
    }
}

impl Group {
    /// The run of the inner axis, and that of the outer where there is one.
    pub(super) fn runs(&self) -> (Run, Option<Run>) {
        (self.inner, self.outer)
    }

    /// The first device of every group that begins before `end`.
    pub(super) fn firsts(self, end: u64) -> impl Iterator<Item = u64> {
        // A device is the first of its group where its place along both axes is the first.
        let first_along = |run: Run, device: u64| device % run.block() < run.stride;
        (0..end).filter(move |&device| {
            first_along(self.inner, device) && self.outer.is_none_or(|run| first_along(run, device))
        })
    }

    /// The devices of the group that begins at `first`, in order.
    pub(super) fn members(self, first: u64) -> impl Iterator<Item = u64> {
        let outer = self.outer.unwrap_or(Run { size: 1, stride: 0 });
        let along = |run: Run, from: u64| (0..run.size).map(move |i| from + i * run.stride);
        along(outer, first).flat_map(move |from| along(self.inner, from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_continue_each_other_are_one() {
        let joined = Group::both(Group::along(4, 2), Group::along(3, 8));
        assert_eq!(joined, Group::along(12, 2));
        assert_eq!(Group::both(Group::ALONE, Group::along(3, 8)), Group::along(3, 8));
        assert_eq!(Group::both(Group::along(3, 8), Group::along(1, 24)), Group::along(3, 8));
        assert_eq!(Group::along(1, 7), Group::ALONE);
    }

    #[test]
    fn axes_with_another_between_them_are_a_run_of_runs() {
        let apart = Group::both(Group::along(4, 2), Group::along(3, 16));
        assert_ne!(apart, Group::along(12, 2));
        assert_eq!((apart.size(), apart.block()), (12, 48));
        let longer = Group::both(apart, Group::along(5, 48));
        assert_eq!(longer, Group::both(Group::along(4, 2), Group::along(15, 16)));
        let deeper = Group::both(Group::along(2, 1), apart);
        assert_eq!(deeper, Group::both(Group::along(8, 1), Group::along(3, 16)));
    }
}
