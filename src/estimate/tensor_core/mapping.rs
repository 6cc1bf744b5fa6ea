//! What a mapping is.

/// One of the three loops inside a product of two matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named as in the formula out[m,n] += A[m,k] · B[k,n]")]
pub enum Loop {
    M,
    K,
    N,
}

/// A size for each of m, k and n, in this order.
pub type Sizes = [u64; 3];

/// Which loops lie on the array; the third streams through it, one step per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Along the array's width.
    pub width: Loop,
    /// Along its depth.
    pub depth: Loop,
    /// In time.
    pub stream: Loop,
}

/// Where and when each multiply-accumulate of a matmul happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mapping {
    /// Cores that divide the batch.
    pub batch_split: u64,
    /// Cores that divide m, k and n.
    pub split: Sizes,
    /// What lies on the array.
    pub way: Way,
    /// What a core holds in its local buffer.
    pub local: Sizes,
    /// The innermost loop over local tiles.
    pub local_inner: Loop,
    /// What the chip holds in the global buffer, of each of the matrices in work.
    pub glb: Sizes,
    /// The innermost loop over tiles of the global buffer.
    pub glb_inner: Loop,
}

impl Loop {
    /// All three, in the order of [`Sizes`].
    pub const ALL: [Self; 3] = [Self::M, Self::K, Self::N];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::M => "m",
            Self::K => "k",
            Self::N => "n",
        }
    }

    /// Its place in [`Sizes`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Way {
    /// One of each pair that differ by width and depth exchanged.
    pub const UPRIGHT: [Self; 3] = [Self::ALL[0], Self::ALL[2], Self::ALL[4]];

    /// All six: stationary weights, inputs or outputs, and their transposes.
    pub const ALL: [Self; 6] = [
        Self { width: Loop::M, depth: Loop::N, stream: Loop::K },
        Self { width: Loop::N, depth: Loop::M, stream: Loop::K },
        Self { width: Loop::K, depth: Loop::N, stream: Loop::M },
        Self { width: Loop::N, depth: Loop::K, stream: Loop::M },
        Self { width: Loop::K, depth: Loop::M, stream: Loop::N },
        Self { width: Loop::M, depth: Loop::K, stream: Loop::N },
    ];
}
