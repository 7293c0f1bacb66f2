"""Leak clusters, pools, snapshots and their files, and what is learned of them later."""
