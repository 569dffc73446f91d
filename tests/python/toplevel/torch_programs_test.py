"""tests/python/toplevel/torch_programs_test.py: programs as people write them for PyTorch run when
only the import changes."""

import gc
import math
import threading

import adjoin as torch
import pytest
from adjoin import nn
from adjoin.nn import functional as F


class Digits(nn.Module):
    """The customary first network."""

    def __init__(self):
        super(Digits, self).__init__()  # noqa: UP008  (as programs have it)
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 2 * 2, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x), inplace=True)
        x = F.max_pool2d(x, 2)
        x = torch.flatten(self.dropout1(x), 1)
        x = F.dropout(F.relu(self.fc1(x)), p=0.1, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def test_train_and_evaluate():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = torch.utils.data.TensorDataset(torch.randn(64, 1, 8, 8), torch.arange(64) % 10)
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
    model = Digits().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.7)
    for _ in range(30):
        model.train()
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
        scheduler.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            pred = model(data).argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    assert correct > 48


class Attention(nn.Module):
    """Causal self-attention written out."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.width = heads, width
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        mask = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        self.register_buffer("bias", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Language(nn.Module):
    """A small causal language model with tied weights, and sampling from it."""

    def __init__(self, words=17, width=16, length=8):
        super().__init__()
        self.length = length
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Embedding(length, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.attention = Attention(width, 2, length)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.lm_head = nn.Linear(width, words, bias=False)
        self.apply(self._init_weights)
        self.lm_head.weight = self.wte.weight

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.wte(idx) + self.wpe(pos)
        x = x + self.attention(self.norms[0](x))
        x = x + self.mlp(self.norms[1](x))
        return self.lm_head(x)

    @torch.no_grad()
    def generate(self, idx, count, top_k):
        for _ in range(count):
            logits = self(idx[:, -self.length :])[:, -1, :]
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("Inf")
            chosen = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            idx = torch.cat((idx, chosen), dim=1)
        return idx


def test_language_model():
    torch.manual_seed(0)
    model = Language()
    assert "lm_head.weight" in model.state_dict()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    other = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    text = (torch.arange(8) * 3 % 17).repeat(4, 1)
    for _ in range(60):
        logits = model(text[:, :-1])
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), text[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert loss.item() < 0.1
    assert model.generate(text[:1, :2], 6, top_k=1).tolist() == text[:1].tolist()


def test_gradient_penalty():
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
    real, fake, share = torch.randn(5, 4), torch.randn(5, 4), torch.rand(5, 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    grads = torch.autograd.grad(outputs=critic(between), inputs=between,
                                grad_outputs=torch.ones(5, 1), create_graph=True,
                                retain_graph=True)[0]  # fmt: skip
    ((grads.norm(2, dim=1) - 1) ** 2).mean().backward()
    assert critic[0].weight.grad.abs().sum().item() > 0


def test_averages_and_loops_by_hand():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    handle = weight.register_hook(lambda grad: grad * 2)
    (weight * weight).sum().backward()
    handle.remove()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad.zero_()
    assert weight.tolist() == pytest.approx([0.6, 1.2])
    model = nn.Linear(2, 2)
    average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, tensor in model.state_dict().items():
        average[name].mul_(0.9).add_(tensor, alpha=0.1)
    assert torch.allclose(average["weight"], model.weight)
    model.weight.data.normal_(0, 0.1)
    model.weight.data = model.weight.data * 2
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 6


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_thousand_steps_keep_no_memory():
    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 5))
    model.register_full_backward_hook(lambda *_: None)
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(16, 32), torch.arange(16) % 5

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    gc.disable()  # nothing may depend on the collector
    try:
        steps(200)
        before = resident()
        steps(1000)
        assert resident() - before < 1 << 20
    finally:
        gc.enable()


def test_two_threads_train_at_once():
    def train(seed, out):
        generator = torch.Generator().manual_seed(seed)
        weight = torch.zeros(4, requires_grad=True)
        wanted = torch.rand(4, generator=generator)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(300):
            optimizer.zero_grad()
            ((weight - wanted) ** 2).sum().backward()
            optimizer.step()
        out[seed] = (weight - wanted).abs().max().item()

    out = {}
    threads = [threading.Thread(target=train, args=(seed, out)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 2 and max(out.values()) < 1e-5
