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

SYSTEM = "a system message in the middle is found wrong"
PAIRS = "calls and outputs of hosted tools, programs and chains are taken for broken"
REFERENCE = "an item that is an id alone is refused"
SCREEN = "a screenshot becomes text that the field does not allow"
APPROVAL = "an approval's request is dropped"
LAST = "the compaction trigger does not stay last"

UNHARMED: dict[str, str] = {
    "anthropic": SYSTEM,
    "anthropic-system-message-in-the-middle": SYSTEM,
    "openai-responses": REFERENCE,
    "openai-responses-item-reference": REFERENCE,
    "openai-responses-async-call-still-open": PAIRS,
    "openai-responses-local-shell": PAIRS,
    "openai-responses-hosted-tool-search": PAIRS,
    "openai-responses-program-and-its-calls": PAIRS,
    "openai-responses-previous-response-begins-with-outputs": PAIRS,
    "openai-responses-conversation-begins-with-an-output": PAIRS,
    "openai-responses-safety-check-acknowledged-in-a-chain": PAIRS,
}
COMPACTED: dict[str, str] = {
    "openai-responses": REFERENCE,
    "openai-responses-item-reference": REFERENCE,
    "openai-responses-local-shell": PAIRS,
    "openai-responses-computer-batched-actions-and-file-screenshot": SCREEN,
    "openai-responses-safety-check-acknowledged": SCREEN,
    "openai-responses-safety-check-acknowledged-in-a-chain": SCREEN,
    "openai-responses-hosted-tool-search": PAIRS,
    "openai-responses-program-and-its-calls": PAIRS,
    "openai-responses-mcp-approval-given-and-used": APPROVAL,
    "openai-responses-mcp-approval-denied": APPROVAL,
    "openai-responses-approval-just-given": APPROVAL,
    "openai-responses-reasoning-before-every-kind-of-item": APPROVAL,
    "openai-responses-compaction-trigger": LAST,
}
