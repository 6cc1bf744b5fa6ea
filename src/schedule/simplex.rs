//! A small linear program solver, used to *propose* weights for a bound.
//!
//! Maximise `gain · x` where `row · x ≤ 1` for every row and `x ≥ 0`; rows may be added after a
//! solution is found. It works in floating point and promises nothing: whoever uses its answer
//! proves it in integers.

/// Smaller numbers count as zero when a pivot is chosen.
const TINY: f64 = 1e-9;

/// The program, solved or on the way: basic variables as functions of the others.
///
/// Variables `0..n` are the unknowns, `n..` the slacks of the rows in the order they were added.
#[derive(Clone, Debug)]
pub(super) struct Simplex {
    n_unknowns: usize,
    /// Coefficients of the non-basic variables, then the value.
    rows: Vec<Vec<f64>>,
    /// What a unit of each non-basic variable gains, then minus the total gain.
    gain: Vec<f64>,
    basic: Vec<usize>,
    nonbasic: Vec<usize>,
}

impl Simplex {
    pub fn new(gain: &[f64]) -> Self {
        let n_unknowns = gain.len();
        let mut gain = gain.to_vec();
        gain.push(0.0);
        let nonbasic = (0..n_unknowns).collect();
        Self { n_unknowns, rows: Vec::new(), gain, basic: Vec::new(), nonbasic }
    }

    /// Adds the rule that the sum of `coefficient · x` over `terms` is at most 1.
    pub fn add(&mut self, terms: &[(usize, f64)]) {
        let n = self.n_unknowns;
        let mut row = vec![0.0; n + 1];
        row[n] = 1.0;
        for &(unknown, coefficient) in terms {
            if let Some(column) = self.nonbasic.iter().position(|&v| v == unknown) {
                row[column] += coefficient;
            } else if let Some(at) = self.basic.iter().position(|&v| v == unknown) {
                for (cell, other) in row.iter_mut().zip(&self.rows[at]) {
                    *cell -= coefficient * other;
                }
            }
        }
        self.basic.push(n + self.rows.len());
        self.rows.push(row);
    }

    /// Moves to a best point; gives up after many steps with the point it has.
    pub fn solve(&mut self) {
        for _ in 0..50 * (self.n_unknowns + self.rows.len() + 1) {
            let Some((row, column)) = self.repair().or_else(|| self.improve()) else { return };
            self.pivot(row, column);
        }
    }

    /// The values of the unknowns.
    pub fn values(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.n_unknowns];
        for (row, &variable) in self.rows.iter().zip(&self.basic) {
            if let Some(value) = values.get_mut(variable) {
                *value = row[self.n_unknowns].max(0.0);
            }
        }
        values
    }

    /// A pivot that lifts the most negative value: a row added after the last solution.
    fn repair(&self) -> Option<(usize, usize)> {
        let n = self.n_unknowns;
        let (row, worst) = (0..self.rows.len())
            .map(|row| (row, self.rows[row][n]))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        if worst >= -TINY {
            return None;
        }
        let ratio = |column: &usize| (self.gain[*column] / self.rows[row][*column]).abs();
        let column = (0..n)
            .filter(|&column| self.rows[row][column] < -TINY)
            .min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
        Some((row, column))
    }

    /// A pivot that raises the total.
    fn improve(&self) -> Option<(usize, usize)> {
        let n = self.n_unknowns;
        let column = (0..n).max_by(|&a, &b| self.gain[a].total_cmp(&self.gain[b]))?;
        if self.gain[column] <= TINY {
            return None;
        }
        let ratio = |row: &usize| self.rows[*row][n] / self.rows[*row][column];
        let row = (0..self.rows.len())
            .filter(|&row| self.rows[row][column] > TINY)
            .min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
        Some((row, column))
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let by = self.rows[row][column];
        let mut pivot_row = std::mem::take(&mut self.rows[row]);
        for cell in &mut pivot_row {
            *cell /= by;
        }
        pivot_row[column] = 1.0 / by;
        let eliminate = |cells: &mut Vec<f64>| {
            let factor = cells[column];
            if factor != 0.0 {
                cells[column] = 0.0;
                for (cell, pivot) in cells.iter_mut().zip(&pivot_row) {
                    *cell -= factor * pivot;
                }
            }
        };
        for cells in self.rows.iter_mut().filter(|cells| !cells.is_empty()) {
            eliminate(cells);
        }
        eliminate(&mut self.gain);
        self.rows[row] = pivot_row;
        std::mem::swap(&mut self.basic[row], &mut self.nonbasic[column]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(gain: &[f64], rows: &[&[f64]], one_by_one: bool) -> f64 {
        let mut simplex = Simplex::new(gain);
        for row in rows {
            let terms: Vec<(usize, f64)> = row.iter().copied().enumerate().collect();
            simplex.add(&terms);
            if one_by_one {
                simplex.solve();
            }
        }
        simplex.solve();
        let values = simplex.values();
        for row in rows {
            let sum: f64 = row.iter().zip(&values).map(|(a, x)| a * x).sum();
            assert!(sum <= 1.0 + 1e-6, "{row:?} {values:?}");
        }
        gain.iter().zip(&values).map(|(g, x)| g * x).sum()
    }

    #[test]
    fn small_programs_are_solved_at_once_and_row_by_row() {
        let check = |gain: &[f64], rows: &[&[f64]], expected: f64| {
            for one_by_one in [false, true] {
                // Before its first row, an unknown has no limit: give each one.
                let found = best(gain, rows, one_by_one && gain.len() == 1);
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
        };
        check(&[1.0], &[&[2.0]], 0.5);
        // A triangle of pairs: a half each.
        check(&[1.0; 3], &[&[1., 1., 0.], &[1., 0., 1.], &[0., 1., 1.]], 1.5);
        check(&[3.0, 2.0], &[&[1.0, 0.5], &[0.25, 1.0]], 24.0 / 7.0);
    }

    #[test]
    fn a_row_added_later_is_respected() {
        let mut simplex = Simplex::new(&[1.0, 1.0]);
        simplex.add(&[(0, 1.0)]);
        simplex.add(&[(1, 1.0)]);
        simplex.solve();
        assert_eq!(simplex.values(), [1.0, 1.0]);
        simplex.add(&[(0, 1.0), (1, 1.0)]);
        simplex.solve();
        let sum: f64 = simplex.values().iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
