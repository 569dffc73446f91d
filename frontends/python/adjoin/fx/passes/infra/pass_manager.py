"""adjoin.fx.passes.infra.pass_manager: programs over graphs one after the other, in an order that constraints allow."""

import functools
import inspect

from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn):
    """The pass with a PassResult: of what changed the module in place and returned nothing, or returned a module."""
    if fn is None:
        return None

    @functools.wraps(fn if inspect.isfunction(fn) else type(fn).__call__)
    def wrapped(graph_module):
        result = fn(graph_module)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, GraphModule) else graph_module, True)

    wrapped.__name__ = _name(fn)
    return wrapped


def this_before_that_pass_constraint(this, that):
    """A constraint: where both passes are, ``this`` comes before ``that``."""
    return lambda before, after: not (before is that and after is this)


def _name(fn):
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def _topological_sort_passes(passes, constraints):
    """The passes in the first order that no constraint forbids: what is free goes by its place."""
    if not constraints:
        return passes
    left, done = list(passes), []
    while left:
        free = [
            one for one in left if all(c(other, one) or c(one, other) is False for c in constraints for other in done)
            and all(c(one, other) for c in constraints for other in left if other is not one)
        ]  # fmt: skip
        if not free:
            raise RuntimeError(f"Circular dependency detected within the following passes: {passes}")
        done += free
        left = [one for one in left if one not in free]
    return done


class PassManager:
    """Runs passes over a GraphModule ``steps`` times, or fewer: until one round changes nothing.

    ``constraints``: functions of two passes, whether the first may come before the second. Checks, functions of the
    module, run at the end, or after every pass (``run_checks_after_each_pass``).
    """

    def __init__(
        self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False
    ):
        self.passes, self.constraints, self.checks = passes or [], constraints or [], []
        self.steps = steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = (
            run_checks_after_each_pass,
            suppress_check_failures,
        )
        self._validated = False

    def add_pass(self, _pass):
        """Adds a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def remove_pass(self, names):
        """Takes out the passes of these names."""
        self.passes = [one for one in self.passes if _name(one) not in names]
        self._validated = False

    def add_constraint(self, constraint):
        """Adds a constraint on the order."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check):
        """Adds a check: a function of the module that raises where something is wrong."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.checks.append(check)

    def validate_constraints(self):
        """Raises where the passes stand in an order that a constraint forbids."""
        if self._validated:
            return
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated: {_name(first)} (number {i}) must not come before {_name(second)}; "
                            "solve_constraints() finds an order"
                        )
        self._validated = True

    def solve_constraints(self):
        """Brings the passes into an order that all constraints allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def check(self, module):
        """Runs the checks; ``suppress_check_failures`` leaves them out."""
        if not self.suppress_check_failures:
            for check in self.checks:
                check(module)

    def __call__(self, module):
        self.validate_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            again = False
            for i, one in enumerate(self.passes):
                result = self._run(i, one, module)
                module, again = result.graph_module, again or result.modified
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or again
            if not again:
                break
        if not self.run_checks_after_each_pass:
            self.check(module)
        return PassResult(module, changed)

    def _run(self, i, one, module):
        try:
            result = one(module)
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"the result of the pass {_name(one)} should be type PassResult, it is {type(result).__name__}; wrap the pass in "
                    "pass_result_wrapper()"
                )
            if result.graph_module is not None:
                result.graph_module.recompile()
            return result
        except Exception as error:
            before = [_name(other) for other in self.passes[:i]]
            raise type(error)(
                f"An error occurred when running the '{_name(one)}' pass after the following passes: {before}: {error}"
            ) from error
