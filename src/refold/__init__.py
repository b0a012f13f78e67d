"""Keeps a language-model agent's conversation inside the model's context window."""
