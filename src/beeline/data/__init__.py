"""Blocks, data sets, readers and the on-disk store."""
