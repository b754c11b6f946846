"""From what a command was told to rows, settings and models."""
