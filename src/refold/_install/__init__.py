"""Installs refold into agents: their settings, the hooks that they call, and what the hooks do."""
