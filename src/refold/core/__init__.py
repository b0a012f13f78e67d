"""Pure values and functions: messages, transcripts, edits, plans and the engine that makes them."""
