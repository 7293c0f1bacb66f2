"""Rows of imported files: which format a row has, and what is stored of it. Opens no file and stores nothing."""
