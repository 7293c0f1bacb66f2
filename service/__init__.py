"""Sluice: harvest, judge, de-leak and serve SN15 trajectories. Never imports `workers`, never needs torch."""

__version__ = "0.1.0"
