"""Payloads as they come over the wire, and their parts as values. Names and types, nothing of their meaning."""
