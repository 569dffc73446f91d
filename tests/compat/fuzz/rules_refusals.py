"""rules_refusals.py: both refuse, with errors of different classes."""

from .rule import Rule, said

# What an error is about, by its text; the first that fits. Both libraries' words are here.
TOPICS = [
    ("memory", r"out of memory|can't allocate|share|overlap|in-place form|single memory location"),
    ("number", r"overflow|does(n't| not) fit|too (large|big)|without overflow|integer is required|too small|Converting complex|real number|interpreted as an integer|cannot be converted|sign of step|cannot be reached|finite|unsupported range|step sign|nonzero|representable range|represented as a SymInt|ZeroDivision|Clamp m|cannot convert float|convert negative int|step must not be 0|step must be greater|step cannot be zero|nan"),
    ("dtype", r"dtype|scalar.?type|no cpu kernel|no order|not ordered|not implemented for|not supported|does not support|complex|float|common one|common dtype|truth values|floating|whole|integral|Promotion|boolean|bool|inputs to be|integer|must agree|source must be (u?int|float|bool|complex)|types can't be cast|cannot be cast"),
    ("words", r"unexpected keyword|has no attribute|missing|invalid combination|must be Tensor|takes .* arguments?|argument .* must be"),
    ("tensors", r"no tensors|non-empty|at least one"),
    ("shape", r"shape|stacks differ|size|elements|broadcast|length|vector|divisible|value per channel|same number|sequence|stretch|expand|reshape|window|tensors? expected|must have a dimension|0-dim|no dimensions|non-zero|without elements"),
    ("place", r"index|dim|out of range|out of bounds|twice|k must be"),
]  # fmt: skip


def topic(error):
    return next((name for name, pattern in TOPICS if said(error, pattern)), None)


def both(name):
    return lambda d: topic(d.ours) == topic(d.theirs) == name


def dtypes(d):
    return both("dtype")(d) and isinstance(d.ours, (RuntimeError, TypeError, ValueError))


def overflow(d):
    return both("number")(d) and isinstance(d.ours, (OverflowError, RuntimeError, TypeError))


def nan_for_integers(d):
    return said(d.ours, "nan cannot become an integer") and said(
        d.theirs, "cannot be converted to type u?int|interpreted as an integer|an integer is required"
    )


def derivative_refused(d):
    """Neither has the derivative; PyTorch has not the function either."""
    return said(d.ours, "le: .*no cpu kernel for complex.*recorded at") and said(
        d.theirs, "xlogy_cpu.* not implemented for 'Complex"
    )


def two_faults(d):
    a, b = topic(d.ours), topic(d.theirs)
    return a is not None and b is not None and a != b


def method_is_missing(d):
    return (
        isinstance(d.theirs, AttributeError)
        and said(d.theirs, "'Tensor' object has no attribute")
        and topic(d.ours) is not None
    )


def shapes(d):
    """The same fault, told as an IndexError by the functions of places, as a RuntimeError by ours."""
    return (
        both("shape")(d)
        and isinstance(d.ours, (RuntimeError, ValueError))
        and isinstance(d.theirs, (IndexError, RuntimeError, TypeError, ValueError))
    )


def ragged(d):
    return said(
        d.ours,
        r"expected a sequence of length|is a complex number, which does not fit|elements must be numbers|has no dtype|cannot be of|no dtype",
    ) and isinstance(d.theirs, (TypeError, ValueError, RuntimeError))


def none_given(d):
    return topic(d.theirs) == "tensors" and said(d.ours, r"no tensors|missing \d|missing N|required argument")


LINE = "Another class of error"
RULES = [
    Rule("class: a number beyond what a dtype or 64 bits hold", "A number beyond 64 bits is an", "class", overflow),
    Rule("class: NaN for an integer", "NaN for an integer", "class", nan_for_integers),
    Rule("more: the derivative of a complex xlogy", "derivatives of `xlogy` of complex numbers", "more", derivative_refused),
    Rule("class: a dtype that an op lacks", "A dtype that an op lacks is", "class", dtypes),
    Rule("class: a method that only Adjoin has", "in-place forms of nearly all ops", "class", method_is_missing),
    Rule("class: what is no number, rows of several lengths", "What is no number", "class", ragged),
    Rule("class: no tensor at all", "without a tensor", "class", none_given),
    Rule("class: a shape that does not fit", "A shape that does not fit", "class", shapes),
    Rule("class: two faults in one call", "A call with two faults", "class", two_faults),
]  # fmt: skip
