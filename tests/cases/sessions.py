"""Runs the steps of a case on a stored session."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import refold
from refold.sessions import Compacted
from tests.cases.stubs import Summarizer, settings, strings

WAIT = 20.0  # seconds for the other thread's half of a step


def run(case, policy):
    """Return the effective history at the end and the facts seen."""
    with TemporaryDirectory() as folder:
        steps = Steps(case, policy, Path(folder) / "sessions.db")
        try:
            for step in case["steps"]:
                steps.do(step)
            return steps.result()
        finally:
            steps.close()


class Steps:
    """The sessions of a case, by name, and what was seen of them so far."""

    def __init__(self, case, policy, path):
        self.case, self.path = case, path
        self.options = settings(case, policy)
        self.stub = Summarizer(case)
        self.store = refold.open_store(path)
        self.sessions, self.name = {}, "main"
        self.views, self.compacted, self.last_ids = [], [], {}
        self.stable = True
        self.appended = {}
        self.waiting = None
        self.unchanged = {}
        self.session  # noqa: B018 # a case begins with its messages in the store

    @property
    def session(self):
        """The session in use; a new one begins with the case's messages."""
        if self.name not in self.sessions:
            self.sessions[self.name] = refold.Session(self.store, self.name, **self.options)
            self.sessions[self.name].append(self.case["messages"])
            self.appended[self.name] = list(self.case["messages"])
        return self.sessions[self.name]

    def do(self, step):
        """Do one step and look at the view after it."""
        before, compactions = self._stored(), len(self.compacted)
        getattr(self, f"_{step['do']}")(step)
        if self.store is not None and self.waiting is None:
            view = self.session.view()
            grows = step["do"] in ("append", "turn", "auto", "view") and len(self.compacted) == compactions
            if grows and self.views:
                self.stable &= view[: len(self.views[-1])] == self.views[-1]
            self.views.append(view)
            self.unchanged[len(self.views) - 1] = self._stored() == before

    def result(self):
        """Return the output and the facts."""
        view = self.session.view()
        originals = self.session.messages
        facts = {
            "compaction_count": self.compacted.count(self.name),
            "prefix_stable_across_steps": self.stable,
            "originals_readable": originals == self.appended[self.name],
            "store_round_trip": originals == self.appended[self.name],
            "should_compact": self.session.needs_compaction(),
            "view_smaller_than_initial": len(str(view)) < len(str(self.case["messages"])),
            **self.stub.seen(view),
        }
        for check in self.case["checks"]:
            facts |= self._judged(check, view)
        return view, facts

    def close(self):
        """Close the store."""
        self.last_ids = self.ids()
        if self.store is not None:
            self.store.close()
        self.store, self.sessions = None, {}

    def ids(self):
        """Return the id of each session; a policy may have renewed it."""
        return {name: session.id for name, session in self.sessions.items()} or self.last_ids

    def _judged(self, check, view):
        initial = self.case["messages"]
        match check["type"]:
            case "view_equals_initial_plus":
                rest = [" ".join(strings(message)) for message in view[len(initial) :]]
                same = view[: len(initial)] == initial and len(rest) == len(check["texts"])
                value = same and all(text in words for text, words in zip(check["texts"], rest, strict=True))
            case "view_equals_prefix_of_initial":
                value = view == initial[: check["messages"]]
            case "view_same_as_step":
                value = view == self.views[check["step"]]
            case "store_unchanged_after_step":
                value = self.unchanged[check["step"]]
            case "session_compacted":
                value = check["session"] in self.compacted
            case _:
                return {}
        return {check["type"]: value}

    def _stored(self):
        return [] if self.store is None else list(zip(self.session.ids, self.session.messages, strict=True))

    # Steps

    def _compact(self, step):
        if "kill_after" in step:
            self._killed()
            return
        self._count(self.session.compact(force=True, summarize=self.stub))

    def _auto(self, step):
        if self.session.needs_compaction():
            self._count(self.session.compact(summarize=self.stub))

    def _view(self, step):
        pass

    def _append(self, step):
        self.session.append(step["messages"])
        self.appended[self.name] += step["messages"]

    def _report_usage(self, step):
        self.session.view()
        self.session.report(step["usage"])

    def _reopen(self, step):
        ids = self.ids()
        self.close()
        self.store = refold.open_store(self.path)
        for name, id in ids.items():
            self.sessions[name] = refold.Session(self.store, id, must_exist=True, **self.options)

    def _rewind(self, step):
        place = step["to_message"]
        self.session.rewind(self.session.ids[place - 1])
        self.appended[self.name] = self.appended[self.name][:place]

    def _undo_last_compaction(self, step):
        self.session.rewind(-1)

    def _turn(self, step):
        user, assistant = ([{"role": role, "content": step[role]}] for role in ("user", "assistant"))
        self._append({"messages": user})
        self._auto(step)
        self._append({"messages": assistant})

    def _use_session(self, step):
        self.name = step["session"]
        self.session  # noqa: B018 # begins it

    def _parallel(self, step):
        with ThreadPoolExecutor(len(step["steps"])) as threads:
            list(threads.map(self._alone, step["steps"]))
        self.session.refresh()

    def _alone(self, step):
        other = Steps.__new__(Steps)
        other.__dict__.update(self.__dict__)
        other.sessions = {self.name: refold.Session(self.store, self.name, **self.options)}
        getattr(other, f"_{step['do']}")(step)

    def _compact_async(self, step):
        begun, go = Event(), Event()
        stub = self.stub

        def summarize(need):
            begun.set()
            assert go.wait(WAIT)
            return stub(need)

        def compact():
            try:
                return self.session.compact(force=True, summarize=summarize)
            finally:
                begun.set()  # a policy that asks for no summary is done

        pool = ThreadPoolExecutor(1)
        self.waiting = pool, pool.submit(compact), go
        assert begun.wait(WAIT)

    def _append_while_compacting(self, step):
        refold.Session(self.store, self.session.id, **self.options).append(step["messages"])
        self.appended[self.name] += step["messages"]

    def _await_compaction(self, step):
        (pool, compaction, go), self.waiting = self.waiting, None
        go.set()
        self._count(compaction.result(WAIT))
        pool.shutdown()
        self.session.refresh()

    def _truncate_store_tail(self, step):
        self.close()
        journal = self.path.with_name(self.path.name + "-wal")
        with journal.open("r+b") as file:  # what was written last
            file.truncate(journal.stat().st_size - step["bytes"])

    def _killed(self):
        """Stop a process right after its compaction is written, before it says so or closes anything."""
        self.close()
        child = os.fork()
        if not child:
            try:
                store = refold.open_store(self.path)
                watch = [lambda event: os._exit(9) if isinstance(event, Compacted) else None]
                session = refold.Session(
                    store, self.last_ids[self.name], must_exist=True, observers=watch, **self.options
                )
                session.compact(force=True, summarize=self.stub)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9, "the compaction was not written"

    def _count(self, compaction):
        if compaction is not None and compaction.plan is not None and not compaction.plan.empty:
            self.compacted.append(self.name)
