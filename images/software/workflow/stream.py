"""A random stream whose values depend on its key alone: same numbers on every Python, host and hash seed."""

from hashlib import sha256


def record(keys: str, *values) -> dict:
    """A row of a file: keys in one text, values beside it."""
    return dict(zip(keys.split(), values, strict=True))


class Stream:
    """SHA-256 of the key and a counter, as integers."""

    def __init__(self, key: str):
        self._key = key
        self._count = 0

    def below(self, limit: int) -> int:
        """0 <= value < limit."""
        self._count += 1
        word = sha256(f"{self._key}/{self._count}".encode()).digest()
        return int.from_bytes(word[:8], "big") % limit

    def between(self, low: int, high: int) -> int:
        """low <= value <= high."""
        return low + self.below(high - low + 1)

    def one_in(self, count: int) -> bool:
        """True once in `count` times."""
        return self.below(count) == 0

    def pick(self, items):
        """One of a sequence."""
        return items[self.below(len(items))]

    def sample(self, items, count: int) -> list:
        """`count` different ones, in random order."""
        pool = list(items)
        return [pool.pop(self.below(len(pool))) for _ in range(count)]

    def shuffle(self, items) -> list:
        """All of them in random order."""
        return self.sample(items, len(items))
