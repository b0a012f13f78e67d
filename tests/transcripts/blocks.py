"""How conversations are compared that a file groups otherwise than a request."""


def in_blocks(messages):
    """Messages with their content as blocks, neighbors of one role as one: as a provider takes them."""
    joined = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": message["role"], "content": list(blocks)})
    return joined
