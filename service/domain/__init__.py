"""Pure decisions: values in, values out. No clock, environment, I/O or global randomness."""
