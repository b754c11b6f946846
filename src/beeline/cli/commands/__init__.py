"""One file a sub-command; none holds an algorithm."""
