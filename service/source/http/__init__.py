"""Requests to strangers: connections, caps, the allowance of requests, answers decoded. It knows no endpoint."""
