"""The healthy requests for which a law does not hold yet, with the reason; a row that holds fails and is to be removed.

A name is that of the format and the feature, or of the format alone for all its features at once.
"""

WAITING = "it awaits results: a conversation that the library sees, and no request yet"
ROUTER = "a field of OpenRouter that the SDK's types do not have"

# The judge is not asked about the request itself, only about what a compaction adds.
UNJUDGED: dict[str, str] = {
    "openai-chat-calls-await-their-results": WAITING,
    "openai-chat-one-of-two-results-so-far": WAITING,
    "openai-chat-pictures-in-a-result": ROUTER,
    "openai-chat-generated-pictures-come-back": ROUTER,
    "openai-chat-everything": ROUTER,
    "openai-responses-call-awaits-its-output": WAITING,
    "openai-responses-async-call-still-open": WAITING,
}

UNHARMED: dict[str, str] = {}
COMPACTED: dict[str, str] = {}
