"""Ways to shorten a view: one verb a file, each a frozen value with `needs` and `edits`."""
