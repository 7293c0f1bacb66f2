"""The static scan of released agent source: what it parses, what it follows, what it finds. Runs no line of it."""
