"""What providers demand of a list of messages: one rule a file, each with both its faces."""
