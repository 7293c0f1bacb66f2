"""The filled service of the API's tests, for commands that read it."""

from tests.api.conftest import client, service

__all__ = ["client", "service"]
