"""tests/programs/vit.py: a small vision transformer, with warm-up, a cosine schedule and averaged weights."""
# ruff: noqa: UP004, UP008, B007  (as people write them)

import adjoin as torch
import adjoin.nn as nn
import numpy as np
from adjoin.optim import lr_scheduler
from adjoin.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class PatchEmbedding(nn.Module):
    def __init__(self, img_size=16, patch_size=4, in_chans=3, embed_dim=32):
        super().__init__()
        self.n_patches = (img_size // patch_size) ** 2
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=2.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        hidden = int(dim * mlp_ratio)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(approximate="tanh"), nn.Dropout(0.0), nn.Linear(hidden, dim), nn.Identity()
        )

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, depth=2, dim=32, heads=4, num_classes=5):
        super().__init__()
        self.patch_embed = PatchEmbedding(embed_dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + self.patch_embed.n_patches, dim).normal_(std=0.02))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        layer = nn.TransformerEncoderLayer(
            d_model=dim,
            nhead=heads,
            dim_feedforward=48,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, num_classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]).view(1, -1, 1, 1), persistent=False)

    def forward(self, x):
        x = self.patch_embed(x - self.mean)
        cls_token = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat((cls_token, x), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.encoder(x)[:, 0])


def build():
    torch.manual_seed(42)
    return ViT()


def images(steps, batch):
    draw = np.random.RandomState(5)
    prototypes = draw.randn(5, 3, 16, 16)
    for _ in range(steps):
        y = draw.randint(0, 5, batch)
        x = prototypes[y] + 1.5 * draw.randn(batch, 3, 16, 16)
        yield torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y).long()


def train(model, steps):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    decay = [p for n, p in model.named_parameters() if p.ndim > 1 and "embed" not in n and "token" not in n]
    rest = [p for n, p in model.named_parameters() if not (p.ndim > 1 and "embed" not in n and "token" not in n)]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999))
    warmup = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, steps - 10), eta_min=1e-5)
    scheduler = lr_scheduler.SequentialLR(optimizer, schedulers=[warmup, cosine], milestones=[10])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    losses, hits, seen = [], 0, 0
    for x, y in images(steps, 16):
        x, y = x.to(device), y.to(device)
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=False):
            logits = model(x)
            loss = criterion(logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        ema_model.update_parameters(model)
        losses.append(loss.detach().item())
        hits += (logits.argmax(dim=-1) == y).float().sum().item()
        seen += len(y)
    model.eval()
    ema_model.eval()
    with torch.inference_mode():
        x, y = next(images(1, 16))
        apart = (ema_model(x.to(device)) - model(x.to(device))).abs().max().item()
    assert 0 < apart < 5 and hits <= seen
    return losses


if __name__ == "__main__":
    print(train(build(), 100))
