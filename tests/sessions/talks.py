"""Conversations in openai-chat shape that grow by exchanges, for tests of sessions."""

from refold.sessions import Session

WINDOW = 4_000


def user(text):
    return {"role": "user", "content": text}


def answer(text):
    return {"role": "assistant", "content": text}


def exchange(number, size=400):
    words = f"word{number} " * (size // 6)
    return [
        user(f"Step {number}"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"c{number}",
                    "type": "function",
                    "function": {"name": "read", "arguments": f'{{"path": "f{number}.py"}}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": words},
        answer(f"Step {number} is done."),
    ]


def talk(count, size=400):
    return [message for number in range(count) for message in exchange(number, size)]


def session(store, id=None, policy="opal", window=WINDOW, **settings):
    return Session(store, id, policy=policy, window=window, **settings)


def summarize(request):
    return "The steps so far were done."
