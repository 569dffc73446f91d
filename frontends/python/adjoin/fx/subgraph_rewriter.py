"""adjoin.fx.subgraph_rewriter: finds the places where a graph does what a pattern does, and puts something else there."""

from typing import Any, NamedTuple

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One place: ``anchor`` is the node that gives its result, ``nodes_map`` goes from the pattern's nodes to the graph's."""

    anchor: Node
    nodes_map: dict[Node, Any]


class ReplacedPatterns(NamedTuple):
    """The same, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm, pattern, replacement):
    """Puts ``replacement`` at every place of ``gm`` that does what ``pattern`` does; gives the places.

    Both are functions, modules or graphs with the same arguments. A place is one where the same is called with the
    same constants, and where nothing but the pattern's results is used outside. Places do not overlap.
    """
    return [Match(found.anchor, found.nodes_map) for found in _replace(gm, pattern, replacement, ())]


def replace_pattern_with_filters(
    gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None, *_, **__
):
    """As replace_pattern, where all of ``match_filters`` say yes to ``(match, the graph, the pattern's graph)``."""
    return _replace(gm, pattern, replacement, match_filters or (), ignore_literals, replacement_callback)


def _graph_of(program):
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _replace(gm, pattern, replacement, filters, ignore_literals=False, callback=None):
    wanted = _graph_of(pattern)
    instead = None if callback else _graph_of(replacement)
    source = replacement if isinstance(replacement, GraphModule) else getattr(instead, "owning_module", None)
    found, used = [], set()
    for node in list(gm.graph.nodes):
        match = _match_at(gm, wanted, node, used, ignore_literals)
        if match is not None and all(accepts(match, gm.graph, wanted) for accepts in filters):
            found.append(match)
            used.update(_inner(match))
    done, now = [], {}  # now: what a node that a place before took out has become
    for match in found:
        mapped = {p: now.get(g, g) if isinstance(g, Node) else g for p, g in match.nodes_map.items()}
        graph = callback(match, gm.graph, wanted) if callback else instead
        if source is not None:
            for node in graph.nodes:
                if node.op in ("call_module", "get_attr") and not _there(gm, node.target):
                    _copy_attr(source, gm, node.target)
        done.append(_put(gm.graph, match, mapped, wanted, graph, now))
    gm.recompile()
    if done:
        gm.delete_all_unused_submodules()
    return done


def _there(module, path):
    for part in path.split("."):
        module = getattr(module, part, None)
        if module is None:
            return False
    return True


def _inner(match):
    return [g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output") and isinstance(g, Node)]


def _results(graph):
    """The nodes that a pattern gives."""
    found = []
    map_arg(graph.output_node().args[0], lambda n: found.append(n) or n)
    return found


def _match_at(gm, pattern, node, used, ignore_literals):
    """The first place whose first result is ``node``, or None."""
    return next(_matches_at(gm, pattern, node, used, ignore_literals), None)


def _matches_at(gm, pattern, node, used, ignore_literals):
    """The places whose first result is ``node``."""
    results = _results(pattern)
    if not results:
        raise ValueError("replace_pattern: the pattern gives no value")
    if node.op in ("placeholder", "output") and results[0].op != "placeholder":
        return
    mapped = {}
    if not _same(gm, pattern, results[0], node, mapped, ignore_literals):
        return
    for found in _with_results(gm, pattern, results[1:], mapped, ignore_literals):
        match = Match(node, found)
        inner, given = set(_inner(match)), {found[r] for r in results}
        if inner & used or any(n not in given and set(n.users) - inner for n in inner):
            continue
        if not _feeds_itself(match, inner):
            yield match


def _with_results(gm, pattern, results, mapped, ignore_literals):
    """The ways to go on with further results, which hang on nodes that are mapped already."""
    if not results:
        yield mapped
        return
    first, rest = results[0], results[1:]
    if first in mapped:
        yield from _with_results(gm, pattern, rest, mapped, ignore_literals)
        return
    near = [u for n in first.all_input_nodes if isinstance(mapped.get(n), Node) for u in mapped[n].users]
    for candidate in dict.fromkeys(near):
        attempt = dict(mapped)
        if _same(gm, pattern, first, candidate, attempt, ignore_literals):
            yield from _with_results(gm, pattern, rest, attempt, ignore_literals)


def _feeds_itself(match, inner):
    """Whether an input of the place is made of what the place gives: one node in its stead would need itself."""
    waiting = [g for p, g in match.nodes_map.items() if p.op == "placeholder" and isinstance(g, Node)]
    seen, first = set(), min(inner) if inner else None
    while waiting:
        node = waiting.pop()
        if node in inner:
            return True
        if node not in seen and first is not None and not node < first:
            seen.add(node)
            waiting.extend(node.all_input_nodes)
    return False


def _same(gm, pattern, p, g, mapped, ignore_literals):
    """Whether node ``g`` does what the pattern's ``p`` does, with what they depend on."""
    if p in mapped:
        return mapped[p] is g or (not isinstance(g, Node) and mapped[p] == g)
    if p.op == "placeholder":
        mapped[p] = g
        return True
    if not isinstance(g, Node) or p.op != g.op or not _same_target(gm, pattern, p, g) or g in mapped.values():
        return False
    mapped[p] = g
    return _arguments(gm, pattern, p.args, g.args, mapped, ignore_literals) and _arguments(
        gm, pattern, dict(p.kwargs), dict(g.kwargs), mapped, ignore_literals
    )


def _same_target(gm, pattern, p, g):
    if p.op not in ("call_module", "get_attr"):
        return p.target == g.target
    owner = pattern.owning_module
    if owner is None or gm is None or not _there(owner, p.target):
        return p.target == g.target
    mine, theirs = _get(gm, g.target), _get(owner, p.target)
    return type(mine) is type(theirs)


def _get(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _arguments(gm, pattern, p, g, mapped, ignore_literals):
    if isinstance(p, Node):
        return _same(gm, pattern, p, g, mapped, ignore_literals)
    if isinstance(p, list | tuple):
        return (
            isinstance(g, list | tuple)
            and len(p) == len(g)
            and all(_arguments(gm, pattern, a, b, mapped, ignore_literals) for a, b in zip(p, g, strict=True))
        )
    if isinstance(p, dict):
        return (
            isinstance(g, dict)
            and p.keys() == g.keys()
            and all(_arguments(gm, pattern, p[k], g[k], mapped, ignore_literals) for k in p)
        )
    return not isinstance(g, Node) and (ignore_literals or (type(p) is type(g) and p == g))


def _put(graph, match, mapped, pattern, instead, now):
    inner = set(_inner(match))
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    places = [n for n in instead.nodes if n.op == "placeholder"]
    if len(inputs) != len(places):
        raise ValueError(f"replace_pattern: the pattern has {len(inputs)} arguments, the replacement {len(places)}")
    values = {new: mapped.get(old) for new, old in zip(places, inputs, strict=True)}
    last_input = [v for v in values.values() if isinstance(v, Node)]
    users = {user for n in inner for user in n.users if user not in inner}
    first_user = next((n for n in graph.nodes if n in users), None)
    with graph.inserting_before(first_user) if first_user is not None else graph.inserting_after(max(last_input)):
        before = set(graph.nodes)
        graph.graph_copy(instead, values)
    made = [n for n in graph.nodes if n not in before]
    old, new = _results(pattern), [values[n] for n in _results(instead)]
    if len(old) != len(new):
        raise ValueError(f"replace_pattern: the pattern gives {len(old)} values, the replacement {len(new)}")
    for was, becomes in zip(old, new, strict=True):
        if mapped[was] is not becomes:
            match.nodes_map[was].replace_all_uses_with(becomes, lambda user: user not in made)
            now[match.nodes_map[was]] = becomes
    for node in sorted(inner, key=list(graph.nodes).index, reverse=True):
        if not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchor, match.nodes_map, made)
