//! Time controls as text.
