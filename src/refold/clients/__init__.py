"""Clients of models over the official SDKs."""

from refold.clients._factory import async_client, client, recounting

__all__ = ["async_client", "client", "recounting"]
