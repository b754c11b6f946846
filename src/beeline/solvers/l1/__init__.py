"""Coordinate descent for L1 and the elastic net."""
