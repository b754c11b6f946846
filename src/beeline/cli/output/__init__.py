"""What a command shows, and how it ends."""
