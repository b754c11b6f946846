"""Finding, opening and writing files."""
