"""The interior-point method."""
