"""What the source has announced, what became of it, and what is to be asked for next. Judges nothing."""
