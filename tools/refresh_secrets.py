"""Writes src/refold/summaries/secrets.json: shapes of secrets from the rules of Gitleaks (MIT), as Python reads them.

git clone https://github.com/gitleaks/gitleaks
python tools/refresh_secrets.py gitleaks/config/gitleaks.toml "$(git -C gitleaks log -1 --format='%h, %cs')"
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import tomllib
import warnings

TABLE = pathlib.Path(__file__).parent.parent / "src" / "refold" / "summaries" / "secrets.json"
NOTICE = "Rules of Gitleaks (github.com/gitleaks/gitleaks), Copyright (c) 2019 Zachary Rice, MIT License"
AFTER = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"  # what must follow a secret in a line of code; prose has a comma or a bracket
FREE = "(?![A-Za-z0-9])"
EXAMPLES = ("aws-access-token", "gcp-api-key")  # keys in print, which cost nothing to remove
# JSON inside JSON has backslashes before quotes, and a value may end at what closes an object, a list or a tag.
ESCAPED = {
    "[\\s'\"]{0,3}": "[\\s'\"\\\\]{0,5}",
    "[\\x60'\"\\s=]{0,5}": "[\\x60'\"\\s=\\\\]{0,7}",
    AFTER: "(?:[\\x60'\"\\s;,}\\]<&\\\\]|$)",
}
ONE_CASE = re.compile(r"\(\?i\)")


def scoped(pattern: str) -> str:
    """Return a pattern whose flags in the middle are groups, for Python has them at the beginning only."""
    while found := ONE_CASE.search(pattern, 1):
        start, depth, end, bracket = found.end(), 0, found.end(), False
        while end < len(pattern):
            sign = pattern[end]
            if sign == "\\":
                end += 1
            elif bracket:
                bracket = sign != "]"
            elif sign == "[":
                bracket = True
            elif sign == "(":
                depth += 1
            elif sign == ")":
                if depth == 0:
                    break
                depth -= 1
            elif sign == "|" and depth == 0:
                raise ValueError("an alternative beside a flag")
            end += 1
        pattern = f"{pattern[: found.start()]}(?i:{pattern[start:end]}){pattern[end:]}"
    return pattern


def python(pattern: str) -> str:
    """Return a pattern of Go as one of Python."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace("\\z", "\\Z")
    return re.sub(r"\(\?P<\w+>", "(?:", scoped(pattern))


def row(rule: dict) -> dict:
    """Return a rule as a row: pattern, words of which one must occur, entropy, and what is no secret after all.

    A rule that knows its secret by a name beside it (`named`) keeps what must follow it; the others may end anywhere.
    """
    pattern = rule["regex"]
    named = pattern.startswith(("[\\w.-]{0,50}?", "(?i)[\\w.-]{0,50}?")) or not rule["keywords"]
    if named:  # the beginning of a name is looked for at each place of a text, and found nothing by itself
        pattern = pattern.replace("(?i)[\\w.-]{0,50}?", "(?i)").removeprefix("[\\w.-]{0,50}?")
        pattern = pattern.replace("(?i:[\\w.-]{0,50}?", "(?i:")
        for plain, escaped in ESCAPED.items():
            pattern = pattern.replace(plain, escaped)
    else:
        pattern = pattern.replace(AFTER, FREE)
    made = {"id": rule["id"], "pattern": python(pattern), "words": rule["keywords"]}
    if "entropy" in rule:
        made["entropy"] = rule["entropy"]
    if rule.get("secretGroup"):
        made["group"] = rule["secretGroup"]
    if named:
        made["named"] = True
    for allowed in rule.get("allowlists", ()):
        if "paths" in allowed or rule["id"] in EXAMPLES:
            continue
        target = "match" if allowed.get("regexTarget") == "match" else "secret"
        if allowed.get("regexTarget") != "line":
            made[f"not_{target}"] = [python(each) for each in allowed["regexes"]]
        if "stopwords" in allowed:
            made["stopwords"] = allowed["stopwords"]
    return made


def main(source: str, version: str) -> None:
    """Write the table."""
    given = tomllib.loads(pathlib.Path(source).read_text("utf-8"))
    rows = []
    for rule in given["rules"]:
        if "regex" not in rule:
            continue
        try:
            made = row(rule)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                re.compile(made["pattern"])
        except (ValueError, re.error, FutureWarning) as error:
            print(f"left out: {rule['id']} ({error})")
            continue
        rows.append(made)
    table = {
        "source": NOTICE,
        "version": version,
        "placeholders": [python(each) for each in given["allowlist"]["regexes"]],
    }
    head = json.dumps(table)[:-1]
    body = ",\n".join(json.dumps(each, ensure_ascii=True) for each in rows)
    TABLE.write_text(f'{head}, "rules": [\n{body}\n]}}\n')
    print(f"{len(rows)} rules")


if __name__ == "__main__":
    main(*sys.argv[1:])
