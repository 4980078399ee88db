"""Entries, partial and rejected reversals in sequence order, closing balances."""

from workflow.stream import record

PROMPT = """# Finance ledger: entries and reversals

- accounts.json: rows of id, opening, floor (amounts), closed_from (a seq, or null).
- entries.json: rows of seq, entry, payer, payee, amount.
- reversals.json: rows of seq, entry, amount ("all" or an amount).

Amounts in the files are text with two decimals, as "12.50"; answers are integers in cents (1250).

Rules
1. Entries and reversals share one sequence; handle them together by rising seq, each on the balances that the
   lines before it left.
2. An entry moves its amount from payer to payee. A reversal of an entry moves money back from the entry's payee to
   its payer; "all" means what is still unreversed of the entry at that moment.
3. A line is rejected, and moves nothing, for the first reason that applies: "unknown" (a reversal of an entry that
   was not accepted before), "spent" (a reversal of an entry with nothing left unreversed), "excess" (a reversal of
   more than is left), "closed" (payer or payee is closed: seq >= closed_from), "floor" (the account that gives the
   money would fall below its floor).

Answer
- balances: object, every account to its closing balance
- rejected: rows [seq, reason], sorted
- open_entries: object, every accepted entry that was reversed in part but not fully to what is left of it
- reversed_entries: accepted entries that were reversed fully, sorted
- turnover: sum of all amounts moved, either way
- headroom: accounts by closing balance minus floor, smallest first; equals by id
- grew: whether the first account of accounts.json closes above its opening (true or false)
"""


def make(stream, difficulty):
    while True:
        accounts = _accounts(stream, 3 + difficulty)
        entries, reversals = _lines(stream, accounts, 8 + 8 * difficulty, 5 + 6 * difficulty)
        expected = _post(accounts, entries, reversals)
        reasons = {reason for _, reason in expected["rejected"]}
        if len(reasons) >= 3 + difficulty and expected["open_entries"] and expected["reversed_entries"]:
            break
    for row in accounts:
        row["opening"], row["floor"] = _text(row["opening"]), _text(row["floor"])
    for row in entries + reversals:
        row["amount"] = row["amount"] if row["amount"] == "all" else _text(row["amount"])
    return {"accounts.json": accounts, "entries.json": entries, "reversals.json": reversals}, expected


def _text(cents):
    return f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02}"


def _accounts(stream, count):
    names = stream.sample(("bank", "cash", "fees", "loan", "rent"), count)
    keys = "id opening floor closed_from"
    rows = [record(keys, name, stream.between(9000, 60000), -stream.between(0, 5000), None) for name in names]
    rows[-1]["closed_from"] = stream.between(50, 85)
    return rows


def _lines(stream, accounts, entry_count, reversal_count):
    seqs = stream.sample(range(1, 99), entry_count + reversal_count)
    names = [account["id"] for account in accounts]
    entries = []
    for number, seq in enumerate(sorted(seqs[:entry_count])):
        payer, payee = stream.sample(names, 2)
        amount = stream.between(900, 24000)
        entries.append(record("seq entry payer payee amount", seq, f"E{number:02}", payer, payee, amount))
    reversals = []
    for seq in seqs[entry_count:]:
        entry = stream.pick(entries[: 1 + entry_count * seq // 99])
        amount = "all" if stream.one_in(3) else entry["amount"] * stream.between(3, 11) // 10
        reversals.append(record("seq entry amount", seq, entry["entry"], amount))
    return stream.shuffle(entries), reversals


def _reason(line, left, accounts, balances, giver, taker, amount):
    if "payer" not in line:
        if line["entry"] not in left:
            return "unknown"
        if not left[line["entry"]]:
            return "spent"
        if amount > left[line["entry"]]:
            return "excess"
    if any((accounts[name]["closed_from"] or 999) <= line["seq"] for name in (giver, taker)):
        return "closed"
    return "floor" if balances[giver] - amount < accounts[giver]["floor"] else ""


def _post(rows, entries, reversals):
    accounts, by_id = {row["id"]: row for row in rows}, {row["entry"]: row for row in entries}
    balances, left = {row["id"]: row["opening"] for row in rows}, {}
    rejected, turnover = [], 0
    for line in sorted(entries + reversals, key=lambda line: line["seq"]):
        entry, amount = by_id[line["entry"]], line["amount"]
        giver, taker = entry["payer"], entry["payee"]
        if line is not entry:
            giver, taker = taker, giver
            amount = left.get(line["entry"], 0) if amount == "all" else amount
        reason = _reason(line, left, accounts, balances, giver, taker, amount)
        if reason:
            rejected.append([line["seq"], reason])
            continue
        balances[giver] -= amount
        balances[taker] += amount
        turnover += amount
        left[line["entry"]] = amount if line is entry else left[line["entry"]] - amount
    return {
        "balances": balances,
        "rejected": rejected,
        "open_entries": {name: rest for name, rest in left.items() if 0 < rest < by_id[name]["amount"]},
        "reversed_entries": sorted(name for name, rest in left.items() if not rest),
        "turnover": turnover,
        "headroom": sorted(accounts, key=lambda name: (balances[name] - accounts[name]["floor"], name)),
        "grew": balances[rows[0]["id"]] > rows[0]["opening"],
    }
