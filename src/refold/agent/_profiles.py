"""What each of the systems does around its policy, as a table: the loop itself names no policy."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["PROFILES", "AgentProfile", "Output", "profile_for"]

Output: TypeAlias = Literal["cut", "archive", "as it is"]


class AgentProfile(Struct, frozen=True):
    """How a loop behaves apart from compaction.

    `durable`: plans are stored with the session; else they last one turn, and the next starts from everything (W18).
    `runtime`: the runtime block ends every system prompt (W12). `output`: what is done with a large tool output:
    "cut" to bytes and lines (N14), "archive" with a preview (L08), or "as it is". `output_share`: the share of the
    input budget above which an output is archived, where 40,000 tokens are more. `changed_files`: a notice names
    the files that changed since the model read them (L10). `pins`: the first request and users' constraints
    are restored where a compaction removed them from the view, which is ours.
    """

    durable: bool = True
    runtime: bool = False
    output: Output = "archive"
    output_share: float = 0.25
    changed_files: bool = True
    pins: bool = True


PROFILES = {
    "wolffish": AgentProfile(durable=False, runtime=True, output="as it is", changed_files=False),  # W12, W18
    "neurolink": AgentProfile(output="cut", changed_files=False),  # N14
    "opal": AgentProfile(output="as it is", changed_files=False),
    "claude-code": AgentProfile(output_share=0.5),  # L08, L10
    "vibe": AgentProfile(output="as it is", changed_files=False),
}


def profile_for(policy: str) -> AgentProfile:
    """Return the profile of a policy's system; of any other, that of the default policy."""
    return PROFILES.get(policy, AgentProfile())
