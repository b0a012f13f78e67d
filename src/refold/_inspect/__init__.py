"""Describes conversations to people: labels of messages, what a plan does to each, and where the tokens go."""
