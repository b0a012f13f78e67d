"""The healthy requests for which a law does not hold yet, with the reason; a row that holds fails and is to be removed.

A name is that of the format and the feature, or of the format alone for all its features at once.
"""

WAITING = "it awaits results: a conversation that the library sees, and no request yet"

# The judge is not asked about the request itself, only about what a compaction adds.
UNJUDGED: dict[str, str] = {
    "openai-chat-calls-await-their-results": WAITING,
    "openai-chat-one-of-two-results-so-far": WAITING,
    "openai-responses-call-awaits-its-output": WAITING,
}

UNHARMED: dict[str, str] = {}
COMPACTED: dict[str, str] = {}
