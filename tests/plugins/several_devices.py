"""tests/plugins/several_devices.py: trains a network whose layers lie on several devices, beside the CPU alone. As a program,
for devices whose plugin is not installed: its arguments are the devices."""

import sys

import adjoin
from adjoin import nn


def losses(devices):
    adjoin.manual_seed(0)
    parts = [nn.Linear(6, 6).to(d) for d in devices]
    params = [p for part in parts for p in part.parameters()]
    opt = adjoin.optim.SGD(params, lr=0.1, momentum=0.9)
    seen = []
    for i in range(4):
        adjoin.manual_seed(i)
        h = adjoin.randn(5, 6)
        for part, d in zip(parts, devices):
            h = adjoin.tanh(part(h.to(d)))
        loss = (h.to(devices[0]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        assert [p.grad.device for p in params] == [p.device for p in params]
        opt.step()
        seen.append(loss.item())
    return seen


def check(devices):
    """In the order given and in the other one."""
    want = losses(["cpu"] * len(devices))
    for order in (devices, devices[::-1]):
        got = losses(order)
        assert all(abs(a - b) <= 1e-4 * abs(b) for a, b in zip(got, want, strict=True)), (order, got, want)


if __name__ == "__main__":
    check(sys.argv[1:])
    print("the losses agree")
