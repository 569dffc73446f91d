"""bench/gpu/steps/graphs.py: captured graphs beside the same calls made eagerly: products, training steps, random numbers, a card
that is full."""

import adjoin
from adjoin import nn
from pieces import DEVICE, figure, guarded, told
from timing import milliseconds

gpus = getattr(adjoin, DEVICE)
Graph = getattr(gpus, "CUDAGraph", None) or gpus.Graph


def captured(f):
    graph = Graph()
    graph.capture_begin()
    try:
        out = f()
    finally:
        graph.capture_end()
    return graph, out


def values():
    """A graph over two streams computes with what its inputs hold at each replay."""
    x, side = adjoin.ones(64, 64, device=DEVICE), gpus.Stream()

    def calls():
        y = x @ x + 1
        side.wait_stream(gpus.current_stream())
        with gpus.stream(side):
            z = y * 2
        gpus.current_stream().wait_stream(side)
        return (y + z).sum()

    calls().item()
    graph, out = captured(calls)
    for value in (1, 2, 3):
        x.fill_(value)
        graph.replay()
        wanted = 64 * 64 * 3 * (64 * value * value + 1)
        assert out.item() == wanted, f"the graph gives {out.item()} for {value}, eager calls {wanted}"


def training():
    """Replayed steps of AdamW are eager steps."""

    def begin():
        adjoin.manual_seed(1)
        net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)).to(DEVICE)
        x, y = adjoin.randn(16, 32).to(DEVICE), adjoin.arange(16).to(DEVICE) % 10
        optimizer = adjoin.optim.AdamW(net.parameters(), lr=1e-2, capturable=True)

        def step():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return net, step

    eager, by_hand = begin()
    graphed, step = begin()
    for _ in range(8):
        by_hand()
    for _ in range(3):
        step()
    graph, _ = captured(step)
    for _ in range(5):
        graph.replay()
    for a, b in zip(graphed.parameters(), eager.parameters(), strict=True):
        adjoin.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    figure("a training step of a small net, eager", 1e3 * milliseconds(by_hand, gpus), "µs")
    figure("the same step as a graph", 1e3 * milliseconds(graph.replay, gpus), "µs")


def random():
    """Each replay draws what the next eager call would."""
    x = adjoin.ones(1000, device=DEVICE)
    call = lambda: nn.functional.dropout(x, 0.5) + adjoin.rand(1000, device=DEVICE)
    gpus.manual_seed(5)
    wanted = [call().tolist() for _ in range(3)]
    gpus.manual_seed(5)
    graph, out = captured(call)
    got = []
    for _ in range(3):
        graph.replay()
        got.append(out.tolist())
    assert got == wanted, "replays draw other numbers than eager calls"
    assert got[0] != got[1], "two replays draw the same numbers"


def full_card():
    """What a live graph computes with stays its own when the card is full."""
    x = adjoin.ones(1 << 14, device=DEVICE)
    graph, z = captured(lambda: ((x + 1) * (x + 2)).sum())
    kept, size = [], gpus.mem_get_info()[1] // 16

    def more():
        kept.append(adjoin.empty(size, dtype=adjoin.uint8, device=DEVICE).fill_(7))

    while size > 1 << 20:
        why = told(more)
        if why:
            assert "out of memory" in why, why
            size //= 2
    graph.replay()
    assert z.item() == 6 << 14, f"the graph gives {z.item()}, not {6 << 14}"
    del kept[:]
    gpus.empty_cache()


def a_wait():
    """A wait within a capture is an error, and the stream is usable after it."""
    x = adjoin.ones(4, device=DEVICE)
    graph, why = Graph(), []
    graph.capture_begin()
    why.append(told((x + 1).sum().item))
    why.append(told(graph.capture_end))
    assert why[0], "a wait within a capture was no error"
    assert (x + 1).sum().item() == 8, "the stream is not usable after a capture that failed"


def main():
    for name, f in (
        ("a graph over two streams reads its inputs anew", values),
        ("replayed training steps are eager ones", training),
        ("each replay draws what the next eager call would", random),
        ("a graph's memory stays its own on a full card", full_card),
        ("a wait within a capture is told", a_wait),
    ):
        with guarded(name):
            f()


main()
