"""A private Postgres and Valkey from pip-installed programs, for a machine without them; with URLs given, unused."""

from service.embedded.session import Services, start

__all__ = ["Services", "start"]
