"""Training on the rows that matter, found by an index."""
