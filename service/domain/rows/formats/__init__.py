"""The formats that rows are given in beside their own: each spells one row, and chooses none."""
