//! A table that forgets: what it holds can be found again, so it need not hold all of it.

use std::collections::HashMap;
use std::hash::Hash;

/// Values that depend on their key alone, the latest of them: two halves, of which the older is forgotten as a whole
/// when the younger is full. What is asked for again moves to the younger.
///
/// Whether a value is found again or was remembered changes how long an answer takes, never the answer.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    younger: HashMap<K, V>,
    older: HashMap<K, V>,
    /// How many each half holds at the most.
    most: usize,
}

impl<K: Eq + Hash + Copy, V: Copy> Bounded<K, V> {
    /// An empty table whose halves hold so many values at the most.
    pub fn new(most: usize) -> Self {
        Self { younger: HashMap::new(), older: HashMap::new(), most: most.max(1) }
    }

    /// What is remembered under a key.
    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(&value) = self.younger.get(key) {
            return Some(value);
        }
        let value = *self.older.get(key)?;
        self.insert(*key, value);
        Some(value)
    }

    /// Remembers a value.
    pub fn insert(&mut self, key: K, value: V) {
        if self.younger.len() == self.most {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_never_too_many() {
        let mut table = Bounded::new(8);
        for key in 0..100_u32 {
            table.insert(key, key + 1);
            assert_eq!(table.get(&7), (key >= 7).then_some(8), "it is asked for again and again");
            assert_eq!(table.get(&key), Some(key + 1));
            assert!(table.younger.len() <= 8 && table.older.len() <= 8);
        }
        assert_eq!(table.get(&50), None);
    }
}
