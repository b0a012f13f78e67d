"""The MCP server: recall, search and the fill of the context, over a store or over the session files of agents."""
