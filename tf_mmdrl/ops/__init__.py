"""Pure functions: the mathematics, with no state and no randomness."""
