"""The validator's own bytes and what grading made of them. Nothing here is served."""
