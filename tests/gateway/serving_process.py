"""`refold serve` as its users run it: a process of its own."""

import contextlib
import os
import re
import subprocess
import sys


@contextlib.contextmanager
def serving(upstream, *options, **environment):
    """A gateway before an OpenAI-compatible server, and its address."""
    command = [sys.executable, "-m", "refold", "serve", "--port", "0", "--store", "memory", "--openai", upstream]
    with subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            lines = iter(process.stderr.readline, "")
            address = next(match[1] for line in lines if (match := re.search(r"serving on (http://\S+)", line)))
            yield process, address
        finally:
            process.kill()
