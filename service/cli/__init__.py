"""The `sluice` command: one module for each group of commands. It starts, asks and prints; it decides nothing."""

from service.cli.app import main

__all__ = ["main"]
