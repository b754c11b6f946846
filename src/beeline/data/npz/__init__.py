"""NumPy `.npz` archives."""
