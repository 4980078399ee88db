"""Builds, publishes and re-verifies environment images.

Reading order: `model/` (the words), `config.py` and `plan.py` (what is asked), `derive/` and `scan/` (the pure
transforms), `ports.py` (what the stages need from the world), `stages/` (build, publish, verify, review), `suites/`
and `checks/` (what is proved), `adapters/` and `embedded/` (the effects), `world.py`, `verbs*.py` and
`__main__.py` (the wiring). `report/` is what people read, `bench/` what is measured.
"""
