"""The texts that are sent to summarizers: one `.md` file each."""

from __future__ import annotations

from refold._prompts.texts import names, text

__all__ = ["names", "text"]
