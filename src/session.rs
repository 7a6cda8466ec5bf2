//! One table's whole pure pipeline behind one face.
