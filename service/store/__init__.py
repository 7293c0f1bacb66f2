"""The only SQL, and the snapshot files. One noun a module; callers own the transaction and commit at the edge."""
