"""The base of every record that the pipeline owns and writes, and its one canonical byte form."""

from __future__ import annotations

from typing import Any, Self

import rfc8785
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from pipeline.errors import StageError


class Record(BaseModel):
    """A frozen, strict record. Unknown fields are refused, so a foreign file is never half understood."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def to_bytes(self) -> bytes:
        """RFC 8785 canonical JSON and a final newline: the bytes that are hashed, signed and committed."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))

    @classmethod
    def load(cls, raw: bytes, where: str) -> Self:
        """Parse what `to_bytes` wrote; StageError names `where` and the first field that is wrong."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "document"
            raise StageError(
                f"not a {cls.__name__} record: {field}: {first['msg']}",
                where=where,
                remedy="remove the file and run the stage that writes it again",
            ) from error


def canonical_json(value: JsonValue | dict[str, Any]) -> bytes:
    """RFC 8785 bytes of a JSON value, with a final newline so that text tools read it well."""
    return rfc8785.dumps(value) + b"\n"
