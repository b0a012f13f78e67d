"""Requests to the configured providers."""
