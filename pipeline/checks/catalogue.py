"""Which checks there are. Adding one is one module and one line here.

`when` is the earliest stage that can know: a check of what was published cannot run before, and is then left out of the
verdicts rather than called passed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from pipeline.checks import (
    base_pinned,
    checks_agree,
    layers_shared,
    licence_allow_list,
    no_fixtures,
    no_future_history,
    no_secrets,
    platform,
    provenance_present,
    runtime_config,
    sbom_valid,
    schemas_equal,
    signature_identity,
    size_budget,
)
from pipeline.checks.observations import ReleaseObservation, Stage
from pipeline.errors import ConfigError
from pipeline.model.finding import Finding
from pipeline.model.record import canonical_json
from pipeline.model.release import Policy, Section

P = TypeVar("P", bound=Section)


@dataclass(frozen=True)
class Check(Generic[P]):
    """A check, the model of its parameters, and the stage from which on it can run."""

    run: Callable[[ReleaseObservation, P], tuple[Finding, ...]]
    parameters: type[P]
    when: Stage

    def load_parameters(self, values: Mapping[str, JsonValue], where: str) -> P:
        """Strictly; ConfigError names the first parameter that is unknown, missing or wrong."""
        try:
            return self.parameters.model_validate_json(canonical_json(dict(values)))
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "parameters"
            hint = _nearest(str(first["loc"][0]) if first["loc"] else "", self.parameters.model_fields)
            raise ConfigError(f"parameter {name}: {first['msg']}", where=where, remedy=hint) from error


CHECKS: Mapping[str, Check[Any]] = {
    base_pinned.NAME: Check(base_pinned.check, base_pinned.Parameters, "build"),
    checks_agree.NAME: Check(checks_agree.check, checks_agree.Parameters, "verify"),
    layers_shared.NAME: Check(layers_shared.check, layers_shared.Parameters, "build"),
    licence_allow_list.NAME: Check(licence_allow_list.check, licence_allow_list.Parameters, "build"),
    no_fixtures.NAME: Check(no_fixtures.check, no_fixtures.Parameters, "build"),
    no_future_history.NAME: Check(no_future_history.check, no_future_history.Parameters, "build"),
    no_secrets.NAME: Check(no_secrets.check, no_secrets.Parameters, "build"),
    platform.NAME: Check(platform.check, platform.Parameters, "build"),
    provenance_present.NAME: Check(provenance_present.check, provenance_present.Parameters, "build"),
    runtime_config.NAME: Check(runtime_config.check, runtime_config.Parameters, "build"),
    sbom_valid.NAME: Check(sbom_valid.check, sbom_valid.Parameters, "build"),
    schemas_equal.NAME: Check(schemas_equal.check, schemas_equal.Parameters, "build"),
    signature_identity.NAME: Check(signature_identity.check, signature_identity.Parameters, "verify"),
    size_budget.NAME: Check(size_budget.check, size_budget.Parameters, "build"),
}


def check_of(policy: Policy) -> Check[Any]:
    """The check that a policy names; ConfigError with the nearest name when there is none."""
    if policy.check not in CHECKS:
        raise ConfigError(
            f"unknown check {policy.check!r}", where=policy_place(policy), remedy=_nearest(policy.check, CHECKS)
        )
    return CHECKS[policy.check]


def policy_place(policy: Policy) -> str:
    """Where a policy is written."""
    return f"policies/{policy.id}.yaml"


def _nearest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    if close and close[0] != name:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(sorted(known))}"
