"""Behaviour suites: what is replayed in a real container before publication and after the anonymous pull."""
