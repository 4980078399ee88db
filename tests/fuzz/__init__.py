"""Coverage-guided fuzzing of the readers in pipeline/scan: one module a target, with `SEEDS` and `read`.

`read` may raise HostileInputError and nothing else. Every seed is a small valid input, which `read` accepts.
"""
