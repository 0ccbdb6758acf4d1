"""Finds a piece of C in a source and replaces it.

White space and comments do not count, so a row of mutants still fits when the code is wrapped or
commented anew.  One thing in comments counts: a step's label, such as P1.  Where the piece has a
comment with labels, the code must have them there too."""

import re

COMMENT = r"/\*.*?\*/|//[^\n]*"
GAP = rf"(?:\s|\\\n|{COMMENT})*"
LABEL = re.compile(r"\b[A-Z]{1,2}\d+[a-z]?\b")
TOKEN = re.compile(rf'{COMMENT}|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\w\s]', re.DOTALL)


class Stale(Exception):
    """The piece is not found once."""


def pattern_of(piece):
    parts = []
    for token in TOKEN.findall(piece.replace("\\\n", " ")):
        if token.startswith(("/*", "//")):
            labels = "".join(rf"(?=(?:(?!\*/).)*\b{label}\b)" for label in LABEL.findall(token))
            parts += [rf"/\*{labels}(?:(?!\*/).)*\*/"] if labels else []
        else:
            parts.append((r"\b" if token[0].isalnum() or token[0] == "_" else "") + re.escape(token) +
                         (r"\b" if token[-1].isalnum() or token[-1] == "_" else ""))
    return re.compile(GAP.join(parts), re.DOTALL)


def replace(text, piece, instead):
    """The text with the piece, which must be there once, replaced; white space around the piece
    stays."""
    found = [match.span() for match in pattern_of(piece).finditer(text)]
    if len(found) != 1:
        raise Stale(f"found {len(found)} times, not once:\n{piece}")
    (start, end), = found
    return text[:start] + instead.strip() + text[end:]
