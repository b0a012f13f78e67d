"""Recall: finds the originals of a conversation that answer a question, the same ones in the same order for whoever asks."""
