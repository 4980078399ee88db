"""A small curriculum of the vendored interface, for tests: sums, counts and a path through letters."""

import json
import random

TASK_IDS = ("letter_counts", "number_pairs")


def make_task(task_id, seed, difficulty):
    """Files, prompt and expected, as a mapping."""
    source = random.Random(f"{task_id}/{seed}/{difficulty}")
    words = ["".join(source.choice("abcd") for _ in range(5)) for _ in range(4 * difficulty)]
    numbers = [source.randrange(1, 90) for _ in range(6 * difficulty)]
    expected = {
        "letters": {letter: sum(word.count(letter) for word in words) for letter in "abcd"},
        "longest": max(words),
        "total": sum(numbers),
        "even": sum(numbers) % 2 == 0,
        "sorted": sorted(numbers),
    }
    files = {"words.json": json.dumps(words), "numbers.json": json.dumps(numbers), "limits.json": b"{}\n"}
    prompt = f"# {task_id}\n\nRead words.json, numbers.json and limits.json; write answer.json.\n"
    return {"files": files, "prompt": prompt, "expected": expected}


def reference_answer(task):
    """By another way: from the files."""
    words, numbers = json.loads(task["files"]["words.json"]), json.loads(task["files"]["numbers.json"])
    text = "".join(words)
    return {
        "letters": {letter: text.count(letter) for letter in "abcd"},
        "longest": sorted(words)[-1],
        "total": sum(numbers),
        "even": not sum(numbers) & 1,
        "sorted": sorted(numbers),
    }


def grade(task, answer):
    """Exact component credit."""
    expected = task["expected"]
    if set(answer) - set(expected):
        return 0.0
    right = [
        key
        for key in expected
        if key in answer and json.dumps(_plain(answer[key])) == json.dumps(_plain(expected[key]))
    ]
    if len(right) == len(expected):
        return 1.0
    return min(0.8, len(right) / len(expected)) if set(right) - {"even"} else 0.0


def _plain(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(item) for item in value] if isinstance(value, list) else value
