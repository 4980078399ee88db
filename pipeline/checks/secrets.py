"""What looks like a secret: by its name, by the prefix that issuers give tokens, by a PEM header, or by its entropy.

Values never leave this module: it says why, never what.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

# every repetition is bounded or starts at a word's beginning, so that a hostile config costs linear time
_NAME = re.compile(
    r"(?:^|[_.-])(?:token|password|passwd|passphrase|secret|credentials?|(?:api|access|private|secret)?key|auth|pat|dsn)"
    r"(?:$|_?\d+$|[_.-])",
    re.IGNORECASE,
)
_PREFIXES = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}|glpat-[A-Za-z0-9_-]{16}"
    r"|hf_[A-Za-z0-9]{20}|sk-[A-Za-z0-9_-]{20}|xox[abprs]-[A-Za-z0-9-]{10}|A(?:KI|SI)A[A-Z0-9]{16}"
    r"|AIza[A-Za-z0-9_-]{30}|npm_[A-Za-z0-9]{30}|pypi-[A-Za-z0-9_-]{40}|dckr_pat_[A-Za-z0-9_-]{20}"
    r"|ya29\.[A-Za-z0-9_-]{20}|eyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10})"
)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,40}(?:PRIVATE KEY|CERTIFICATE)")
_IN_URL = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^/\s:@]{0,200}:[^/\s@]{1,200}@", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9+=_-]{16,}")
_DIGEST = re.compile(r"[0-9a-fA-F]+")
_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s;&|]+)"
_ASSIGNMENT = re.compile(rf"(?<![\w.-])([A-Za-z_][\w.-]*)={_VALUE}")
_OPTION = re.compile(rf"(?<![\w.-])--([A-Za-z][\w-]*)[=\s]\s*{_VALUE}")
_NOTHING = re.compile(r"(?:\$\{?\w+\}?|\*+|<[^>]*>|true|false|none|null|0|1)?", re.IGNORECASE)


def suspicions(name: str, value: str, entropy_bits: float, length: int) -> Iterator[str]:
    """Why a named value looks like a secret; nothing when it does not.

    `entropy_bits` is Shannon entropy a character, from which a word of at least `length` characters is suspicious.
    """
    if _NAME.search(name) and not _NOTHING.fullmatch(value.strip("\"'")):
        yield "its name says that it is a secret"
    yield from text_suspicions(value, entropy_bits, length)


def text_suspicions(text: str, entropy_bits: float, length: int) -> Iterator[str]:
    """The same for text without a name."""
    if _PREFIXES.search(text):
        yield "it begins as tokens of a known issuer do"
    if _PEM.search(text):
        yield "it holds a PEM block"
    if _IN_URL.search(text):
        yield "a URL in it has a password"
    if any(_random(word, entropy_bits, length) for word in _WORD.findall(text)):
        yield "it looks random"


def assignments(command: str) -> Iterator[tuple[str, str]]:
    """Name and value of each `NAME=value` and `--name value` in a command line."""
    for match in (*_ASSIGNMENT.finditer(command), *_OPTION.finditer(command)):
        yield match[1], match[2]


def _random(word: str, entropy_bits: float, length: int) -> bool:
    """Hex is what digests and commits are made of; words and paths have few kinds of characters or little entropy."""
    if len(word) < length or _DIGEST.fullmatch(word):
        return False
    kinds = sum(bool(re.search(kind, word)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    counts = Counter(word).values()
    entropy = -sum(count / len(word) * math.log2(count / len(word)) for count in counts)
    return kinds == 3 and entropy >= entropy_bits
