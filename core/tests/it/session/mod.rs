//! Sessions: an engine over two journals, resumed and checked.

mod checking;
mod resuming;
mod running;
mod studio;
