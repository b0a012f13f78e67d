"""Exact token counts by the model's vocabulary, and the sizes of images."""

from refold._counting.tokenizers import ExactCounter, counter_for

__all__ = ["ExactCounter", "counter_for"]
