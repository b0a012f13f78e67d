"""The command line: one module a command, each reads, calls a verb and prints."""
