"""The bundle method."""
