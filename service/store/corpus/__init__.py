"""Trajectories with their bytes, evidence, verdicts and tombstones, under numbered revisions."""
