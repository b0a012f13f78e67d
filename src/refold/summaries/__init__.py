"""Summaries by a model: the call, the chunks of a long text, and the guard that checks each answer."""
