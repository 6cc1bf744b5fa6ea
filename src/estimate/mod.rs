//! How long one operator takes on one kind of core, found by searching mappings, remembered in a
//! table.

pub mod tensor_core;
