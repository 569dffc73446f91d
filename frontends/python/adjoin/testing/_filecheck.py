"""adjoin.testing._filecheck: whether a text has some pieces, in an order: what a program prints, a table of a profile."""

import re


class FileCheck:
    """Pieces that a text has to have, each after the one before: ``FileCheck().check("a").check_not("b").check("c").run(text)``."""

    def __init__(self):
        self._rules = []  # (kind, piece)

    def _add(self, kind, piece):
        self._rules.append((kind, piece))
        return self

    def check(self, test_string):
        """It stands somewhere after the piece before."""
        return self._add("CHECK", test_string)

    def check_not(self, test_string):
        """It does not stand between the piece before and the next one, or the end."""
        return self._add("CHECK-NOT", test_string)

    def check_same(self, test_string):
        """It stands later on the same line."""
        return self._add("CHECK-SAME", test_string)

    def check_next(self, test_string):
        """It stands on the next line."""
        return self._add("CHECK-NEXT", test_string)

    def check_count(self, test_string, count, exactly=False):
        """It stands so often; with ``exactly`` no further time before the next piece."""
        for _ in range(count):
            self.check(test_string)
        return self.check_not(test_string) if exactly else self

    def check_dag(self, test_string):
        """Like its neighbours that are check_dag too, after the piece before, in any order."""
        return self._add("CHECK-DAG", test_string)

    def check_regex(self, test_string):
        """A match of the regular expression stands after the piece before."""
        return self._add("CHECK-REGEX", test_string)

    def check_source_highlighted(self, test_string):
        """It stands there with a line of ~ under each of its characters."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", test_string)

    def run(self, test_string):
        """Looks at the text; RuntimeError says which rule does not hold."""
        at, forbidden, rules = 0, [], list(self._rules)
        while rules:
            kind, piece = rules.pop(0)
            if kind == "CHECK-NOT":
                forbidden.append(piece)
                continue
            group = [piece]
            while kind == "CHECK-DAG" and rules and rules[0][0] == kind:
                group.append(rules.pop(0)[1])
            found = [self._find(test_string, kind, one, at) for one in group]
            self._refuse(test_string, forbidden, at, min(begin for begin, _ in found))
            at, forbidden = max(end for _, end in found), []
        self._refuse(test_string, forbidden, at, len(test_string))

    def _find(self, text, kind, piece, at):
        """(begin, end) of a piece."""
        if kind == "CHECK-REGEX":
            match = re.compile(piece).search(text, at)
            begin, end = match.span() if match else (-1, -1)
        else:
            begin = text.find(piece, at)
            end = begin + len(piece)
        if begin < 0:
            raise RuntimeError(
                f'Expected to find "{piece}" but did not find it\nSearched string:\n{text[at:]}\nFrom {kind}: {piece}'
            )
        lines = text.count("\n", at, begin)
        wanted = {"CHECK-SAME": 0, "CHECK-NEXT": 1}.get(kind, lines)
        if lines != wanted:
            raise RuntimeError(
                f'Expected to find "{piece}" {"on the same line" if kind == "CHECK-SAME" else "on the next line"}, it is {lines} lines '
                f"further\nSearched string:\n{text[at:]}\nFrom {kind}: {piece}"
            )
        if kind == "CHECK-SOURCE-HIGHLIGHTED" and not self._is_marked(text, begin, end):
            raise RuntimeError(
                f'Expected to find "{piece}" highlighted but it is not\nSearched string:\n{text[at:]}\nFrom {kind}: {piece}'
            )
        return begin, end

    @staticmethod
    def _is_marked(text, begin, end):
        start, stop = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
        below = text[stop + 1 :].partition("\n")[0] if stop >= 0 else ""
        marks = below[begin - start : end - start]
        return len(marks) == end - begin and set(marks) == {"~"}

    @staticmethod
    def _refuse(text, pieces, begin, end):
        for piece in pieces:
            if piece in text[begin:end]:
                raise RuntimeError(
                    f'Expected to not find "{piece}" but found it\n{text[begin:end]}\nFrom CHECK-NOT: {piece}'
                )

    def __repr__(self):
        return "".join(f"{kind}: {piece}\n" for kind, piece in self._rules)
