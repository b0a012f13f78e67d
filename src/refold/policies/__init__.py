"""The policies, one a file: a file that is added is a policy that is added."""

from __future__ import annotations

from refold.policies._registry import find, names, threshold

__all__ = ["find", "names", "threshold"]
