"""The gateway: any agent, any SDK, one changed base URL."""
