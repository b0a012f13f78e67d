"""Run as a program: one of several processes that append to the same session, each again until it is its turn.

python -m tests.stores.worker URL NAME COUNT
"""

import sys

from refold.errors import WriteConflict
from refold.sessions import Session, open_store
from tests.sessions.talks import user


def main(url, name, count):
    with open_store(url, timeout=60) as store:
        session = Session(store, "shared", format="openai-chat", policy="opal", window=100_000)
        collisions = 0
        for number in range(int(count)):
            while True:
                try:
                    session.append([user(f"{name} says {number}"), user(f"{name} adds {number}")])
                    break
                except WriteConflict:
                    collisions += 1
                    session.refresh()
    sys.stdout.write(f"{collisions}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
