//! How fast layers are scheduled, and by which means they are proved.
fn main() {}
