"""The corpus in figures and pages. Read-only."""
