"""Gates and rule sets: what a trajectory must be to be kept, and why it was not. Attributes nothing."""
