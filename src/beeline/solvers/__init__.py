"""Solvers of the objective."""
