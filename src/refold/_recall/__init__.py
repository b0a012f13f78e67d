"""Recall: finds the originals of a conversation that answer a question, the same for whoever asks."""
