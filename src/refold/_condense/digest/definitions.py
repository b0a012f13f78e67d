"""Reads off the text of a file what its lines define: functions, types, rules of a style sheet, headings."""

from __future__ import annotations

import re

__all__ = ["defined_in", "is_prose", "is_test"]

NAME = 56  # characters of such a name
PROSE = re.compile(r"\.(?:mdx?|rst|txt|adoc)$", re.I)
FENCED = re.compile(r"^```.*?(?:^```|\Z)", re.M | re.S)
TEST = re.compile(
    r"(?:^|[/\\])(?:tests?|__tests__|specs?)[/\\]|[._-](?:test|spec)\.\w+$|(?:^|[/\\])test_[^/\\]*$", re.I
)
_BEFORE = (
    r"(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|static|abstract|async|final|override)[ \t]+)*"
)
DEFINED = re.compile(
    rf"^[+ \t]*{_BEFORE}(?:def|class|func(?:tion)?|fn|struct|interface|type|trait|enum|module|macro_rules!)[ \t*]+"
    r"(?:\([^()\n]*\)[ \t]*)?([A-Za-z_]\w{2,}+)(?![ \t]*[,}])|"  # `type Name,` is imported
    rf"^\+?{_BEFORE}(?:const|let|var)[ \t]+([A-Za-z_]\w{{2,}})|"
    rf"^\+?[ \t]+{_BEFORE}(?!(?:if|for|while|switch|catch|return)\b)"
    r"([A-Za-z_]\w{2,})\([^()\n]*\)(?:: [^{\n]+)? \{$",
    re.M,
)
TITLE = re.compile(r"^\+?#{1,4} ([^\n#(),;:]{3,40})$", re.M)  # of a text; in code it is a comment
TESTS_BELOW = re.compile(r"^\+?mod tests \{$", re.M)  # in Rust they stand in the file that they test
STYLES = re.compile(r"\.(?:css|s[ac]ss|less)$", re.I)
RULE = re.compile(r"^([.#][\w-]+)[^{};\n]*\{[ \t]*$", re.M)


def defined_in(text: str, path: str) -> dict[str, None]:
    """Return the names that lines of a file define, in order: of a text for readers its headings.

    Of a test no methods are returned, which are those of mocks, and of other files no tests that stand in them.
    """
    if STYLES.search(path):
        return dict.fromkeys(RULE.findall(text))
    if is_prose(path):
        return dict.fromkeys(map(str.strip, TITLE.findall(FENCED.sub("", text) if "```" in text else text)))
    if below := TESTS_BELOW.search(text):
        text = text[: below.start()]
    names = (
        (named or assigned or ("" if is_test(path) else method)).strip()
        for named, assigned, method in DEFINED.findall(text)
    )
    return dict.fromkeys(name for name in names if 0 < len(name) <= NAME)


def is_prose(path: str) -> bool:
    """Tell whether a file is a text for readers."""
    return PROSE.search(path) is not None


def is_test(path: str) -> bool:
    """Tell whether a file holds tests."""
    return TEST.search(path) is not None
