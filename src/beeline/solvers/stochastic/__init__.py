"""Stochastic gradient steps: rows in random order, without a certificate."""
