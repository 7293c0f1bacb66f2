"""Who made each call, from evidence: replies and calls paired, logs compared, trust graded. Rejects nothing."""
