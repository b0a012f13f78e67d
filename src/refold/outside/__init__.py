"""Answers to needs: the first place with input and output."""
