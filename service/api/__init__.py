"""The REST service and its page. Reads the store; decides nothing and writes nothing."""

from service.api.app import create_app

__all__ = ["create_app"]
