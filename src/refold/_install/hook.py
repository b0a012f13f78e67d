"""What an agent calls as a hook: reads an event from standard input, and answers on standard output.

It is run by its path and without the package (`python -P -S hook.py AGENT FOLDER EVENT`), since importing all of refold
takes longer than a hook may. Most calls are about a short output: nothing of it is decoded, and nothing is imported
but what Python itself has at its start. Other events need JSON. Only a long output needs modules of the package: a
`refold mcp` that runs has them and is asked, else they are imported here. Whatever goes wrong, the agent goes on: the
exit code is 0, and the fault is in the log for `refold doctor`.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing typing takes a fifth of the time of a call
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Event: TypeAlias = dict[str, Any]

__all__ = ["FASTEST", "LOG", "READY", "SERVED", "SESSION", "SOCKETS", "answer_to", "log", "main", "ready_file"]

LOG = "hooks.jsonl"
MOST_LOGGED = 1_000_000  # bytes, after which the log begins again and the old one is kept once
FASTEST = 11_000  # characters: an output this short is never shortened, not even encoded bytes
AFTER_TOOL = ("PostToolUse", "AfterTool")
SKIPPED = ("Read", "read_file", "read")  # files come with line numbers, and edits quote them
WORDS = ("stdout", "content", "result", "output", "text", "llmContent")  # fields with the words of a tool's output
REPLACING = {"codex": "block", "gemini-cli": "deny"}  # decisions whose reason stands in for the output
READY = "ready"  # the folder of digests that wait to be shown
DIGEST = "digest.json"
SESSION = "session.json"  # what a digest is made of, where the agent has no file of it
NOTED = "prepared"
SOCKETS = "sockets"  # the folder of those that a running `refold mcp` listens at
PATIENCE = 2.0  # seconds for each step of an answer from there
SERVED = b"+"  # how such an answer begins, so that one that was cut off is known


def main(arguments: list[str], spent: float = 0.0) -> int:
    """Answer one event and log it, with the time it took and the seconds spent before; always 0."""
    began = time.perf_counter() - spent
    agent, folder, name = (*arguments, "", "", "")[:3]
    entry: Event = {"at": round(time.time(), 3), "agent": agent, "event": name}
    try:
        if name == "prepare":  # in the background, started by an event before a compaction
            _background(agent, folder, arguments[3], arguments[4])
            return 0
        content = sys.stdin.buffer.read()
        is_output = name in AFTER_TOOL and not _awaited(agent, folder, content)
        if not is_output or len(content) > FASTEST:
            answer = None
            if is_output and os.path.isdir(sockets := os.path.join(folder, SOCKETS)):
                answer = _served(agent, sockets, name, content)
            if answer is None:
                answer, done = answer_to(agent, folder, name, content)
                entry |= done
            sys.stdout.write(answer)
            sys.stdout.flush()
    except Exception as error:  # the agent goes on
        entry["error"] = f"{type(error).__name__}: {error}"[:300]
    entry["ms"] = round((time.perf_counter() - began) * 1000, 1)
    log(folder, entry)
    return 0


def answer_to(agent: str, folder: str, name: str, content: bytes) -> tuple[str, Event]:
    """Return the answer to an event as JSON, empty where there is none, and what is logged of it."""
    import json

    event = json.loads(content or b"{}")
    name = str(event.get("hook_event_name") or name)
    answer, done = _answered(agent, folder, name, event)
    return json.dumps(answer) if answer else "", {"event": name, "session": _session(event), **done}


def _served(agent: str, sockets: str, name: str, content: bytes) -> str | None:
    """Return the answer of a `refold mcp` that runs, which has the modules already; None where there is none."""
    import socket

    for each in os.listdir(sockets):
        place = os.path.join(sockets, each)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE)
                connection.connect(place)
                connection.sendall(f"{agent}\n{name}\n".encode() + content)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # called in this round
        except ConnectionRefusedError:  # its process was killed
            os.unlink(place)
        except OSError:  # too slow
            return None
        else:
            return answer[1:].decode() if answer[:1] == SERVED else None
    return None


def ready_file(agent: str, folder: str, session: str) -> str:
    """Return where the digest of a session waits until it is shown."""
    return os.path.join(folder, READY, agent, f"{session}.json")


def _awaited(agent: str, folder: str, content: bytes) -> bool:
    """Tell whether a digest waits for the session that an event, not decoded yet, is about."""
    try:
        waiting = os.listdir(os.path.join(folder, READY, agent))
    except OSError:
        return False
    return any(name.removesuffix(".json").encode() in content for name in waiting)


def _answered(agent: str, folder: str, name: str, event: Event) -> tuple[Event, Event]:
    """Return the answer to an event, and what is logged of it."""
    session = _session(event)
    place = os.path.join(folder, "sessions", agent, session)
    if name in AFTER_TOOL:
        answer, done = _shortened(agent, place, name, event)
        return (answer, done) if answer else _digest(agent, folder, session, name)
    if name in ("PreCompact", "PreCompress"):
        return {}, _prepared(agent, folder, place, event)
    if name == "SessionStart" and event.get("source") in ("compact", "resume"):
        return _digest(agent, folder, session, name)
    return {}, {}


def _shortened(agent: str, place: str, name: str, event: Event) -> tuple[Event, Event]:
    """Return the output of a tool with its longest text shortened; the whole text is stored before."""
    output = event.get("tool_response")
    if str(event.get("tool_name")) in SKIPPED or (isinstance(output, dict) and output.get("persistedOutputPath")):
        return {}, {}  # where the agent itself shows a part and names a file, there is nothing to gain
    at = max(_texts(output), key=lambda path: len(_at(output, path)), default=None)
    if at is None or len(text := _at(output, at)) <= FASTEST:
        return {}, {}
    package()
    from refold._install.shortening import shortened

    id = _safe(str(event.get("tool_use_id") or f"{time.time_ns():x}"))
    file = os.path.join(place, "outputs", f"{id}.txt")
    short = shortened(text, str(event.get("tool_name") or "tool"), event.get("tool_input"), id, file)
    if short is None:
        return {}, {}
    _write(file, text)
    done = {"shortened": [len(text), len(short)]}
    if agent in REPLACING:
        return {"decision": REPLACING[agent], "reason": short}, done
    specific: Event = {"hookEventName": name, "updatedToolOutput": _with(output, at, short)}
    return {"hookSpecificOutput": specific}, done


def _texts(output: Any, path: tuple[Any, ...] = ()) -> Any:
    """Yield the paths to the words of an output."""
    if isinstance(output, str):
        if not path or path[-1] in WORDS:
            yield path
    elif isinstance(output, dict):
        for key, value in output.items():
            yield from _texts(value, (*path, key))
    elif isinstance(output, list):
        for place, value in enumerate(output):
            yield from _texts(value, (*path, place))


def _at(output: Any, path: tuple[Any, ...]) -> str:
    for step in path:
        output = output[step]
    return str(output)


def _with(output: Any, path: tuple[Any, ...], text: str) -> Any:
    if not path:
        return text
    copy = dict(output) if isinstance(output, dict) else list(output)
    copy[path[0]] = _with(output[path[0]], path[1:], text)
    return copy


def _prepared(agent: str, folder: str, place: str, event: Event) -> Event:
    """Start the making of the digest, once for each state of the session: some agents call this several times."""
    import subprocess

    transcript = str(event.get("transcript_path") or "")
    if event.get("transcript"):  # of an agent that has no file for a session
        import json

        transcript = os.path.join(place, SESSION)
        _write(transcript, json.dumps(event["transcript"]))
    size = os.path.getsize(transcript)
    os.makedirs(place, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(os.path.join(place, f"{NOTED}-{size}"), os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return {"again": True}
    command = [sys.executable, "-P", os.path.abspath(__file__), agent, folder, "prepare", transcript, place]
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(command, start_new_session=True, **quiet)  # noqa: S603 # this very file
    process.returncode = 0  # nobody waits for it: it outlives this process
    return {"preparing": size}


def _background(agent: str, folder: str, transcript: str, place: str) -> None:
    package()
    import json

    from refold._install.digest import digest_of

    session = os.path.basename(place)
    _write(ready_file(agent, folder, session), json.dumps(digest_of(transcript, session)))
    if transcript == os.path.join(place, SESSION):
        os.unlink(transcript)
    log(folder, {"at": round(time.time(), 3), "agent": agent, "event": "prepared", "session": session})


def _digest(agent: str, folder: str, session: str, name: str) -> tuple[Event, Event]:
    """Return the digest of what a compaction took out, once; where it is not ready, a later event brings it."""
    import json

    ready = ready_file(agent, folder, session)
    kept_as = os.path.join(folder, "sessions", agent, session, DIGEST)
    try:
        with open(ready, encoding="utf-8") as file:
            text = str(json.load(file)["text"])
        os.makedirs(os.path.dirname(kept_as), mode=0o700, exist_ok=True)
        os.replace(ready, kept_as)
    except FileNotFoundError:
        return {}, {}
    if not text:
        return {}, {}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}, {"digest": len(text)}


def package() -> None:
    """Make the package's modules importable without the package's own imports, which take 100 ms."""
    if "refold" in sys.modules:
        return
    import gc
    import types

    gc.disable()  # nothing that is imported is freed before the process ends
    if sys.flags.no_site:
        import site

        site.main()  # the folders of the packages that ours needs
    module = types.ModuleType("refold")
    module.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["refold"] = module


def _session(event: Event) -> str:
    return _safe(str(event.get("session_id") or "unknown"))


def _safe(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in name)[:120] or "unknown"


def _write(path: str, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    partial = f"{path}.{os.getpid()}"
    with open(
        os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8", errors="replace"
    ) as file:
        file.write(text)  # with a question mark for half of an emoji, where the agent cut an output
    os.replace(partial, path)


def log(folder: str, entry: Event) -> None:
    """Append an entry to the log that `refold doctor` reads."""
    try:
        path = os.path.join(folder, LOG)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MOST_LOGGED:
            os.replace(path, f"{path}.1")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            file.write(_line(entry) + "\n")
    except OSError:  # a full disk does not stop the agent
        pass


def _line(entry: Event) -> str:
    """Return an entry as JSON; what the call of a short output logs needs no import for it."""
    if entry.keys() == {"at", "agent", "event", "ms"} and entry["event"] in AFTER_TOOL:
        return '{{"at": {at}, "agent": "{agent}", "event": "{event}", "ms": {ms}}}'.format_map(entry)
    import json

    return json.dumps(entry)


if __name__ == "__main__":
    main(sys.argv[1:], time.process_time())
    os._exit(0)  # all is written: to take down what was imported costs 10 ms
