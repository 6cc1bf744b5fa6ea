//! Turns answers into text, JSON or CSV, given a writer.
//!
//! Not here: where the text goes (see the doors), and any decision about it.

pub mod advice;
pub mod basis;
pub mod boxes_csv;
pub mod chakra;
pub mod chip_page;
pub mod chips;
pub mod chips_front;
pub mod chips_why;
pub mod course;
pub mod design;
pub mod designs_csv;
pub mod estimate;
pub mod gantt;
pub mod html;
pub mod inspect;
pub mod models;
pub mod outcome;
pub mod part;
pub mod placement;
pub mod plot;
pub mod quantity;
pub mod reproduction;
pub mod saved;
pub mod schedule;
pub mod sweep;
pub mod timeline;
pub mod trace;
pub mod validation;
pub mod validation_page;
