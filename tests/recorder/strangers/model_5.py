# %% [markdown]
# # Final project: summarising reviews with attention
# encoder block 1 = my own heads, encoder block 2 = the faster version from the tutorial session,
# decoder = GRU with Bahdanau attention

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0
EMB = 40
HEADS = 5
VOCAB = 50


# %%  one head (notice: scores are (batch, KEYS, QUERIES), so the softmax is over dim 1!)
class OneHead(nn.Module):
    def __init__(self, emb, size, p=0.1):
        super().__init__()
        self.key = nn.Linear(emb, size)
        self.query = nn.Linear(emb, size)
        self.value = nn.Linear(emb, size)
        self.drop = nn.Dropout(p)
        self.size = size

    def forward(self, x, mask):
        K = self.key(x)
        Q = self.query(x)
        V = self.value(x)
        scores = torch.bmm(K, Q.transpose(1, 2))  # (B, Tk, Tq)
        scores = scores / math.sqrt(self.size)
        scores = scores.masked_fill(mask.unsqueeze(2) == 0, -1e9)
        att = F.softmax(scores, dim=1)
        att = self.drop(att)
        out = torch.bmm(V.transpose(1, 2), att)  # (B, size, Tq)
        return out.transpose(1, 2), att


class MyMultiHead(nn.Module):
    def __init__(self, emb, n_heads):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(emb, emb // n_heads) for _ in range(n_heads)])
        self.out = nn.Linear(emb, emb)

    def forward(self, x, mask, truth=None):
        outs = []
        atts = []
        for head in self.heads:
            o, a = head(x, mask)
            outs.append(o)
            atts.append(a)
        if truth is not None:
            w = torch.stack([a.transpose(1, 2) for a in atts], dim=1)
            truth.append({"name": "block1.att", "weights": w.detach(), "output": torch.stack(outs, dim=1).detach()})
        return self.out(torch.cat(outs, dim=2))


# %%  version 2: everything (T, B, E), heads folded in the batch, baddbmm adds the mask
class FastMultiHead(nn.Module):
    def __init__(self, emb, n_heads):
        super().__init__()
        self.h = n_heads
        self.d = emb // n_heads
        self.qkv = nn.Linear(emb, emb * 3)
        self.out = nn.Linear(emb, emb)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x, mask, truth=None):
        T, B, E = x.size()
        q, k, v = torch.chunk(self.qkv(x), 3, dim=2)
        q = q.contiguous().view(T, B * self.h, self.d).transpose(0, 1)  # (B*h, T, d)
        k = k.contiguous().view(T, B * self.h, self.d).permute(1, 2, 0)  # (B*h, d, T)
        v = v.contiguous().view(T, B * self.h, self.d).transpose(0, 1)
        bias = torch.zeros(B, T).masked_fill(mask == 0, -1e9)
        bias = bias.repeat_interleave(self.h, dim=0).unsqueeze(1)  # (B*h, 1, T)
        scores = torch.baddbmm(bias, q, k, beta=1, alpha=1 / math.sqrt(self.d))
        scores = scores - scores.max(dim=2, keepdim=True)[0]
        weights = nn.Softmax(dim=2)(scores)
        weights = self.dropout(weights)
        ctx = torch.bmm(weights, v)  # (B*h, T, d)
        if truth is not None:
            truth.append(
                {
                    "name": "block2.att",
                    "weights": weights.detach().view(B, self.h, T, T),
                    "output": ctx.detach().view(B, self.h, T, self.d),
                }
            )
        ctx = ctx.transpose(0, 1).contiguous().view(T, B, E)
        return self.out(ctx)


# %%
class Block(nn.Module):
    def __init__(self, att):
        super().__init__()
        self.att = att
        self.norm1 = nn.LayerNorm(EMB)
        self.norm2 = nn.LayerNorm(EMB)
        self.ff = nn.Sequential(nn.Linear(EMB, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, EMB))

    def forward(self, x, mask, truth=None):
        x = self.norm1(x + self.att(x, mask, truth))
        x = self.norm2(x + self.ff(x))
        return x


# %%  Bahdanau: score = v^T tanh(W1 h + W2 s). No dot product and no matmul with the values
class Bahdanau(nn.Module):
    def __init__(self, emb, hidden, att_size):
        super().__init__()
        self.W1 = nn.Linear(emb, att_size)
        self.W2 = nn.Linear(hidden, att_size)
        self.V = nn.Linear(att_size, 1, bias=False)

    def forward(self, states, hidden, mask, truth=None):
        # states (T, B, E), hidden (B, H)
        energy = self.V(torch.tanh(self.W1(states) + self.W2(hidden)))  # (T, B, 1)
        energy[mask.t() == 0] = -1e9
        alpha = torch.softmax(energy, 0)
        context = (alpha * states).sum(0)  # (B, E)
        if truth is not None:
            truth.append(
                {
                    "name": "attention",
                    "weights": alpha.detach().permute(1, 2, 0).unsqueeze(1).clone(),
                    "output": context.detach()[:, None, None, :].clone(),
                }
            )
        return context, alpha


# %%
class ReviewSummariser(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.truth = None
        self.embedding = nn.Embedding(VOCAB, EMB, padding_idx=PAD)
        self.position = nn.Embedding(100, EMB)
        self.block1 = Block(MyMultiHead(EMB, HEADS))
        self.block2 = Block(FastMultiHead(EMB, HEADS))
        self.attention = Bahdanau(EMB, hidden, 24)
        self.init_h = nn.Linear(EMB, hidden)
        self.gru = nn.GRUCell(EMB + EMB, hidden)
        self.fc = nn.Linear(hidden + EMB, VOCAB)
        self.dropout = nn.Dropout(0.3)

    def forward(self, review, steps=3):
        mask = (review != PAD).int()
        pos = torch.arange(review.size(1)).expand_as(review)
        x = self.dropout(self.embedding(review) + self.position(pos))
        print("embedded", x.shape)
        x = self.block1(x, mask, self.truth)
        x = self.block2(x.transpose(0, 1), mask, self.truth)
        print("encoded", x.shape)
        h = torch.tanh(self.init_h(x.mean(0)))
        word = torch.ones(review.size(0), dtype=torch.long)  # <sos> = 1
        scores = []
        for _ in range(steps):
            context, _alpha = self.attention(x, h, mask, self.truth)
            h = self.gru(torch.cat([self.embedding(word), context], 1), h)
            scores.append(self.fc(torch.cat([h, context], 1)))
            word = scores[-1].argmax(1)
        # print(alpha.squeeze())
        return torch.stack(scores, 1)


# %%
def build():
    torch.manual_seed(505)
    model = ReviewSummariser()
    for name, p in model.named_parameters():  # untrained attention is too flat to look at
        if "att" in name and name.endswith("weight"):
            p.data *= 2.5
    model.eval()
    review = torch.randint(2, VOCAB, (4, 10))
    review[1, 7:] = PAD
    review[2, 9:] = PAD
    review[3, 4:] = PAD
    model.truth = []
    with torch.no_grad():
        result = model(review, steps=3)
    truth = {"calls": model.truth, "result": result}
    model.truth = None
    return model, (review,), {"steps": 3}, truth
