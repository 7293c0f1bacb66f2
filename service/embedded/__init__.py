"""A private Postgres and Valkey from pip-installed programs, for a machine without them. Not used when URLs are given."""

from service.embedded.session import Services, start

__all__ = ["Services", "start"]
