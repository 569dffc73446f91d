"""tests/compat/databases/table.py: what was asked of each entry and how it went, as a table with a column per aspect."""

import collections


class Differs(AssertionError):
    """Adjoin does another thing than PyTorch."""


class Table:
    def __init__(self):
        self.asked = collections.Counter()  # (column, entry) -> cases
        self.failed = collections.defaultdict(list)  # (column, entry) -> what each failing case told
        self.left_out = {}  # (column, entry) -> why it is not asked

    def ask(self, column, entry, case, question):
        """Counts one case; whatever ``question()`` raises is its failure. Returns its answer, or None."""
        self.asked[column, entry] += 1
        try:
            return question()
        except Exception as e:
            told = " ".join(str(e).split())[:300]
            name = "" if isinstance(e, Differs) else type(e).__name__ + ": "
            self.failed[column, entry].append(f"{case}: {name}{told}")
            return None

    def leave_out(self, column, entry, why):
        self.left_out[column, entry] = why

    def columns(self):
        return list(dict.fromkeys(column for column, _ in self.asked))

    def counts(self, column):
        """Cases asked, cases failed, entries asked, entries with a failure."""
        mine = [key for key in self.asked if key[0] == column]
        bad = [key for key in mine if self.failed.get(key)]
        return sum(self.asked[k] for k in mine), sum(len(self.failed[k]) for k in bad), len(mine), len(bad)

    def share(self, column):
        """The entries of a column that pass whole, from 0 to 1."""
        _, _, entries, bad = self.counts(column)
        return 1 - bad / entries

    def text(self, cases=2):
        lines = [f"{'aspect':24}{'entries':>9}{'pass':>9}{'share':>9}{'cases':>9}{'fail':>7}"]
        for column in self.columns():
            asked, failed, entries, bad = self.counts(column)
            lines.append(f"{column:24}{entries:9}{entries - bad:9}{100 * self.share(column):8.1f}%{asked:9}{failed:7}")
        for (column, entry), told in sorted(self.failed.items()):
            if told:
                lines.append(f"\n{column} | {entry}: {len(told)} of {self.asked[column, entry]}")
                lines += [f"    {one}" for one in told[:cases]]
        lines += [f"\nleft out: {column} | {entry}: {why}" for (column, entry), why in sorted(self.left_out.items())]
        return "\n".join(lines)
