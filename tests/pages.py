"""Follows a page as a reader does: saves its files, types its commands, and compares what they print.

A block with a title is a file, and what follows `$` in a block `console` is typed. An ellipsis in the output stands for
any text, and figures may differ by half, since a better digest moves them. `pip install` is not run:
what it names must be an extra of the project.
"""

import contextlib
import io
import math
import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from refold._cli.main import cli

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)
FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
WHOLE = r"(?<![\d.,])"  # no figure begins in the middle of one that an ellipsis stands for
FRAMEWORKS = ("langchain",)  # in environments of their own (`make adapters`), whose tests follow the page too
MISSING = "this framework is not installed here"
PORT = "8787"  # of the pages; a free one is taken in its place
WIDTH = "100"
# These start servers or other programs; the other commands of refold are called in this process, which takes no time.
PROCESSES = ("run", "serve", "mcp")


class Typed(NamedTuple):
    """A command, what the page shows of its output, and what it printed."""

    command: str
    shown: str
    printed: str

    @property
    def is_as_shown(self):
        if self.printed == MISSING:
            return True
        shown = _plain(self.shown)
        words = [f".*{WHOLE}".join(map(re.escape, re.split(" ?… ?", part))) for part in FIGURE.split(shown)]
        pattern = f"({FIGURE.pattern})".join(words).removesuffix(WHOLE)
        found = re.fullmatch(pattern, _plain(self.printed))
        figures = zip(FIGURE.findall(shown), found.groups(), strict=True) if found else [("0", "1")]
        return all(math.isclose(_number(one), _number(other), rel_tol=0.5) for one, other in figures)


def _plain(text):
    """Leave out how a table is laid out, and which of its figures is the best."""
    return " ".join(text.replace("★", "").split())


def _number(text):
    return float(text.replace(",", ""))


def follow(page, folder):
    """Yield each command of a page with its outputs; it is typed in a folder that has the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    reader = _Reader(folder)
    try:
        for language, title, text in FENCE.findall(page):
            if title:
                (folder / title).write_text(text.replace(PORT, reader.port), "utf-8")
            elif language == "console":
                for command, shown in COMMAND.findall(text):
                    yield reader.type(command, shown)
    finally:
        reader.close()


class _Reader:
    """Someone at a terminal of their own, with refold installed."""

    def __init__(self, folder):
        self.folder = folder
        self.servers = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        programs = folder / ".bin"
        programs.mkdir()
        for name, words in (("refold", "-m refold"), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / ".local" / "share"),
            "XDG_CACHE_HOME": str(folder / ".cache"),
            "COLUMNS": WIDTH,
            "NO_COLOR": "1",
        }

    def type(self, command, shown):
        """Type a command; of one that ends in `&` the output is what it prints until it is as shown."""
        if not command.endswith("&"):
            return Typed(command, shown, self._output(command))
        out = self.folder / f"server-{len(self.servers)}.log"
        words = ["bash", "-c", f"exec {command[:-1].replace(PORT, self.port)}"]
        with out.open("wb") as file:
            server = subprocess.Popen(
                words, cwd=self.folder, env=os.environ | self.environment, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        self.servers.append(server)
        until = time.monotonic() + 30
        while True:
            typed = Typed(command, shown, out.read_text("utf-8").replace(self.port, PORT))
            if typed.is_as_shown or server.poll() is not None or time.monotonic() > until:
                return typed
            time.sleep(0.05)

    def _output(self, command):
        line, _, target = command.replace("\\\n", " ").partition(" > ")
        name, *arguments = shlex.split(line, comments=True)
        if name == "export":
            names = [each.partition("=")[0] for each in arguments if "=" in each]
            shown = self._by_shell(
                f"{command.replace(PORT, self.port)} && printf '%s\\n' {' '.join(f'${name}' for name in names)}"
            )
            self.environment |= dict(zip(names, shown.splitlines(), strict=True))
            return ""
        if name == "pip":
            return _named_extras(arguments[1:])
        alone = not set("|<>&;*$~=") & set(line)
        if alone and name == "refold" and (arguments[0] not in PROCESSES or "--check" in arguments):
            if arguments[0] in ("replay", "batch") and arguments[1] != "report":
                arguments += ["--jobs", "1"]  # starting processes takes longer than the work
            done = CliRunner().invoke(cli, arguments, env=self.environment)
            if target:
                (self.folder / target).write_text(done.stdout, "utf-8")
            return done.stderr if target else done.output.replace(self.port, PORT)
        if alone and name == "python" and arguments[1:] == []:
            return self._run_file(arguments[0])
        return self._by_shell(command).replace(self.port, PORT)

    def _by_shell(self, command):
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=os.environ | self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.stdout

    def _run_file(self, name):
        printed = io.StringIO()
        modules, environment = set(sys.modules), os.environ.copy()
        os.environ.update(self.environment)
        sys.path.insert(0, str(self.folder))
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(self.folder / name), run_name="__main__")
        except SystemExit as end:
            printed.write(f"{end.code or ''}")
        except ModuleNotFoundError as error:
            if error.name not in FRAMEWORKS:
                raise
            return MISSING
        finally:
            sys.path.remove(str(self.folder))
            os.environ.clear()
            os.environ.update(environment)
            for module in set(sys.modules) - modules:
                if str(getattr(sys.modules[module], "__file__", "")).startswith(str(self.folder)):
                    del sys.modules[module]
        return printed.getvalue()

    def close(self):
        """End what was started."""
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)


def _named_extras(arguments):
    """Say nothing, as `pip -q` does, where all names are extras of the project or the project itself."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for argument in arguments:
        if argument.startswith("."):
            named = argument.removeprefix(".").strip("[]")
            assert set(named.split(",")) <= set(extras), argument
    return ""
