"""Recall: finds the originals of a conversation that answer a question, for the gateway's tool and the MCP server."""
