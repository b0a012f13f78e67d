"""The gateway's HTTP server: authentication, headers, bodies and the relay of responses."""
