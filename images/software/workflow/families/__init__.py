"""One module a family: PROMPT (its rules) and make(stream, difficulty) -> ({file name: JSON}, expected answer)."""
