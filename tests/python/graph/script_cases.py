"""tests/python/graph/script_cases.py: functions that are scripted: loops, branches, lists, dictionaries, classes; with their arguments."""

import math
from collections import namedtuple
from typing import List, NamedTuple, Optional  # noqa: UP035


CASES = []


def case(*args):
    """The function is a case, and these are its arguments; a tuple of sizes stands for a tensor of them."""

    def keep(f):
        CASES.append((f, args))
        return f

    return keep


X = "x"  # float32[4, 3]
V = "v"  # float32[5]
N = "n"  # int64[6]


# Numbers.
@case(7, 3)
def arithmetic(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a // b, -a % b, a**b, a & b, a | b, a ^ b, a << b, a >> 1, ~a, -a


@case(7.5, -2.0)
def real_arithmetic(a: float, b: float):
    return a + b, a * b, a / b, a // b, a % b, a**2, abs(b), round(a), round(a / 3, 3), int(a), divmod(a, b), a > b


@case(100)
def collatz(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@case(20)
def fibonacci(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case(30)
def primes(n: int):
    found: list[int] = []
    for i in range(2, n):
        prime = True
        for p in found:
            if p * p > i:
                break
            if i % p == 0:
                prime = False
                break
        if prime:
            found.append(i)
    return found


def gcd_of(a: int, b: int) -> int:
    return a if b == 0 else gcd_of(b, a % b)


@case(252, 105)
def recursion(a: int, b: int):
    return gcd_of(a, b)


@case(2.0)
def newton(x: float):
    guess, i = x, 0
    while abs(guess * guess - x) > 1e-12 and i < 50:
        guess = (guess + x / guess) / 2
        i += 1
    return guess, i, math.sqrt(x), math.floor(x * 1.7), math.pi, math.exp(-x), math.log(x)


@case(3, 8)
def conditions(a: int, b: int):
    return (
        a < b <= 8,
        1 < a < b < 5,
        a == 3 and b,
        a == 4 or b,
        not a,
        (a if a > b else b),
        a in (1, 2, 3),
        b not in [8],
    )


@case(1, 2.5, True)
def mixed_types(a: int, b: float, c: bool):
    return (
        a + b,
        a + c,
        c * 3,
        b * c,
        int(b),
        float(a),
        bool(a),
        str(b),
        a == 1.0,
        isinstance(c, int),
        max(a, b),
        min(a, b),
    )


# Texts.
@case("The quick brown fox")
def words(s: str):
    counts = {}
    for c in s.lower():
        if c.isalpha():
            counts[c] = counts.get(c, 0) + 1
    return sorted(counts.items()), s.split(), " ".join(reversed(s.split())), s.upper().replace("QUICK", "slow")


@case("abc", 42, 3.14159)
def formats(s: str, n: int, x: float):
    return (
        f"{s}-{n:05d}-{x:.2f}",
        f"{s!r:>8}|{n:<6}|{x:^10.3f}|{n:x}|{1e20}|{x:e}",
        "%s %d %.1f" % (s, n, x),
        "{}:{:>4}".format(s, n),  # noqa: UP032
    )


@case("level")
def palindrome(s: str):
    for i in range(len(s) // 2):
        if s[i] != s[-1 - i]:
            return False
    return s[::-1] == s and s[1:3] == "ev" and s.find("v") == 2 and s.startswith("le")


@case("3 4 + 2 *")
def calculator(text: str):
    stack: list[int] = []
    for word in text.split():
        if word.isdigit():
            stack.append(int(word))
        else:
            b, a = stack.pop(), stack.pop()
            if word == "+":
                stack.append(a + b)
            elif word == "*":
                stack.append(a * b)
            else:
                raise ValueError(f"what is {word}?")
    return stack[0]


# Lists.
@case([5, 3, 8, 1, 9, 2])
def bubble_sort(items: List[int]):  # noqa: UP006
    n = len(items)
    for i in range(n):
        for j in range(n - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items


@case([4, 1, 7, 3])
def list_methods(items: list[int]):
    items.append(10)
    items.extend([11, 12])
    items.insert(1, 99)
    last = items.pop()
    items.remove(7)
    first = items.pop(0)
    place, count = items.index(10), items.count(1)
    copy = items.copy()
    copy.reverse()
    copy.sort()
    items[1:3] = [0]
    del items[0]
    return items, last, first, place, count, copy, items + copy, items * 2, items[-1], items[::2], sum(copy), len(items)


@case([1, 2, 3, 4, 5, 6])
def comprehensions(items: list[int]):
    squares = [i * i for i in items]
    even = [i for i in items if i % 2 == 0]
    pairs = [(a, b) for a in items for b in even if a < b]
    table = {i: i**2 for i in items if i > 2}
    return (
        squares,
        even,
        pairs,
        table,
        [[j for j in range(i)] for i in range(4)],
        sum(i for i in items),
        any(i > 5 for i in items),
    )


@case([[1, 2, 3], [4, 5, 6]])
def transpose(rows: list[list[int]]):
    out = []
    for j in range(len(rows[0])):
        out.append([row[j] for row in rows])
    return out, list(zip(*rows)), [max(r) for r in rows]


@case([3, 1, 2], ["a", "b", "c"])
def walks(numbers: list[int], letters: list[str]):
    out = []
    for i, (n, s) in enumerate(zip(numbers, letters)):  # noqa: B905
        out.append(f"{i}{s * n}")
    for i, s in enumerate(letters, 10):
        out.append(s + str(i))
    return out, [s for _, s in sorted(zip(numbers, letters))], list(range(10, 0, -3)), list(reversed(numbers))  # noqa: B905


@case([2, 7, 11, 15], 9)
def two_sum(numbers: list[int], target: int) -> tuple[int, int] | None:
    seen: dict[int, int] = {}
    for i, n in enumerate(numbers):
        if target - n in seen:
            return seen[target - n], i
        seen[n] = i
    return None


@case(6)
def pascal(n: int):
    rows = [[1]]
    while len(rows) < n:
        last = rows[-1]
        rows.append([1] + [a + b for a, b in zip(last[:-1], last[1:])] + [1])  # noqa: B905, RUF005
    return rows


@case(8)
def sieve(n: int):
    board = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if (i + j) % 3 == 0:
                continue
            board[i][j] = i * j
    total, *rest = board[3]
    return board[2], total, rest, board[-1][-2]


# Dictionaries.
@case({"a": 1, "b": 2})
def dict_methods(d: dict[str, int]):
    d["c"] = 3
    d.update({"a": 10})
    gone = d.pop("b")
    old = d.setdefault("z", 26)
    more = {**d, "y": 25}
    keys = [k for k in d]  # noqa: C416
    return (
        d,
        gone,
        old,
        keys,
        list(d.values()),
        list(more.items()),
        "a" in d,
        "q" in d,
        d.get("q"),
        d.get("q", -1),
        len(d),
    )


@case(["apple", "bob", "cat", "apple", "bob", "apple"])
def count_words(words: list[str]):
    counts: dict[str, int] = {}
    for w in words:
        if w not in counts:
            counts[w] = 0
        counts[w] += 1
    best, most = "", 0
    for w, n in counts.items():
        if n > most:
            best, most = w, n
    return counts, best


@case(4)
def memo(n: int):
    known: dict[int, int] = {0: 1}
    for i in range(1, n + 1):
        known[i] = known[i - 1] * i
    groups: dict[bool, list[int]] = {}
    for k, v in known.items():
        groups.setdefault(v % 2 == 0, []).append(k)
    return known, groups


@case({"w": 1.0}, 3)
def nested(config: dict[str, float], depth: int):
    tree = {"value": config["w"], "children": []}
    for i in range(depth):
        tree = {"value": tree["value"] * (i + 2), "children": [tree]}
    total = 0.0
    left = [tree]
    while left:
        node = left.pop()
        total += node["value"]
        left += node["children"]
    return total


# Tuples and classes.
class Point(NamedTuple):
    x: float
    y: float = 0.0


Segment = namedtuple("Segment", ["a", "b"])


@case(3.0, 4.0)
def named_tuples(x: float, y: float):
    p, q = Point(x, y), Point(x=y)
    s = Segment(p, q)
    a, b = p
    return p, s.b.x + s.a.y, a * b, p[0], p == Point(3.0, 4.0), p._replace(x=1.0), s


class Vector:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y

    def __add__(self, other: "Vector"):
        return Vector(self.x + other.x, self.y + other.y)

    def __eq__(self, other):
        return self.x == other.x and self.y == other.y

    def dot(self, other: "Vector") -> float:
        return self.x * other.x + self.y * other.y

    @property
    def length(self):
        return math.sqrt(self.dot(self))

    def scale(self, by: float):
        self.x *= by
        self.y *= by
        return self


@case(3.0)
def classes(x: float):
    a, b = Vector(x, 4.0), Vector(1.0, 1.0)
    c = (a + b).scale(2.0)
    return a.length, a.dot(b), c.x, c.y, a == Vector(3.0, 4.0), isinstance(a, Vector)


class Stack:
    def __init__(self):
        self.items: list[int] = []

    def push(self, n: int):
        self.items.append(n)

    def pop(self):
        if len(self.items) == 0:
            raise IndexError("empty")
        return self.items.pop()

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i: int):
        return self.items[i]

    def __contains__(self, n: int):
        return n in self.items


@case(5)
def stacks(n: int):
    s = Stack()
    for i in range(n):
        s.push(i * i)
    top = s.pop()
    return len(s), top, s[1], 9 in s, 16 in s, [i for i in s], bool(Stack())  # noqa: C416


class Shape:
    def area(self):
        return 0.0

    def told(self):
        return f"area {self.area():.1f}"


class Square(Shape):
    def __init__(self, side: float):
        self.side = side

    def area(self):
        return self.side**2


class Circle(Shape):
    def __init__(self, r: float):
        self.r = r

    def area(self):
        return math.pi * self.r**2 + super().area()


@case(2.0)
def inheritance(n: float):
    shapes = [Square(n), Circle(n), Square(1.0)]
    return [s.told() for s in shapes], sum([s.area() for s in shapes]), [isinstance(s, Square) for s in shapes]


class Account:
    rate = 0.1

    def __init__(self, owner: str, start: int = 0):
        self.owner, self.balance, self.log = owner, start, []

    def move(self, amount: int):
        if self.balance + amount < 0:
            self.log.append(f"refused {amount}")
            return False
        self.balance += amount
        self.log.append(f"moved {amount:+d}")
        return True


@case([50, -30, -100, 7])
def accounts(moves: list[int]):
    a = Account("ann")
    b = Account("bob", start=5)
    done = [a.move(m) for m in moves]
    b.move(-5)
    return done, a.balance, a.log, b.log, {"ann": a.balance, "bob": b.balance}, a.owner


# None and Optional.
@case(None, 4)
def optional(a: Optional[int], b: int | None):  # noqa: UP045
    total = 0
    if a is not None:
        total += a
    if b is not None:
        total += b
    return total, a is None, a or b


def summed(*items: int, **named: int):
    total = 0
    for i in items:
        total += i
    return total, named


@case([1, 2, 3])
def spread(items: list[int]):
    return summed(*items), summed(1, *items, a=4), summed(**{"b": 5})


# Errors.
@case(-1)
def guarded(n: int):
    assert n < 5, "n is large"
    if n > 100:
        raise RuntimeError(f"{n} is too large")
    return "fine"


@case([[0, 1, 1], [0, 1, 0], [1, 0, 1]])
def islands(grid: list[list[int]]):
    seen, found = {}, 0
    for i in range(len(grid)):
        for j in range(len(grid[i])):
            if grid[i][j] == 0 or (i, j) in seen:
                continue
            found += 1
            left = [(i, j)]
            while left:
                a, b = left.pop()
                if not (0 <= a < len(grid) and 0 <= b < len(grid[a])) or (a, b) in seen or grid[a][b] == 0:
                    continue
                seen[(a, b)] = found
                left += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]
    return found, seen
