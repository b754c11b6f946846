"""Solvers of losses that are cut off."""
