"""Rows, blocks of them, and data sets: what everything else is made of."""
