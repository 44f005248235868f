"""Ways of getting each exercise wrong, beside the slips that it knows itself: what stands in the solution in place of what,
and words of the mistake that is to be named; empty where it is only placed.
"""

WRONG_WAYS: dict[str, dict[str, str]] = {
    "softmax": {
        "scores.masked_fill(blocked, -torch.inf), dim=-1 ⟶ scores.masked_fill(blocked, -torch.inf), dim=-2": "wrong axis",
        "scores.masked_fill(blocked, -torch.inf) ⟶ scores.masked_fill(blocked, 0.0)": "Blocked scores are set to 0",
        "scores.masked_fill(blocked, -torch.inf) ⟶ scores.masked_fill(~blocked, -torch.inf)": "read the other way round",
        "scores.masked_fill(blocked, -torch.inf) ⟶ scores": "The mask is missing",
        "scores.masked_fill(blocked, -torch.inf) ⟶ scores.masked_fill(blocked.mT, -torch.inf)": "",
        "weights = torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1) ⟶ "
        "weights = torch.softmax(scores, dim=-1).masked_fill(blocked, 0.0)": "The mask comes after the softmax",
    },
    "positions": {
        "torch.arange(n)[:, None] ⟶ torch.arange(1, n + 1)[:, None]": "counted from 1",
        "P[:, 0::2] = torch.sin(angle) ⟶ P[:, 0::2] = torch.cos(angle)\n"
        "P[:, 1::2] = torch.cos(angle) ⟶ P[:, 1::2] = torch.sin(angle)": "Sine and cosine are exchanged",
        "P[:, 0::2] = ⟶ P[:, : d_model // 2] =\nP[:, 1::2] = ⟶ P[:, d_model // 2 :] =": "another order",
        "(pair / d_model) ⟶ (pair / 2 / d_model)": "The exponent counts the pairs",
        "(pair / d_model) ⟶ (1 - pair / d_model)": "The slow waves stand in the low dimensions",
        "torch.cos(angle) ⟶ torch.cos(pos / 10_000 ** ((pair + 1) / d_model))": "an angle of its own",
        "return P ⟶ return 3 * P": "Every number is 3 times the right one",
        "return P ⟶ return P.T": "axes exchanged",
    },
    "head": {
        "/ math.sqrt(q.shape[-1]) ⟶ ": "not divided by √d_k",
        "math.sqrt(q.shape[-1]) ⟶ q.shape[-1]": "divided by d_k, without the root",
        "math.sqrt(q.shape[-1]) ⟶ math.sqrt(len(q) * q.shape[-1])": "divided by √d_model",
        "masked_softmax(scores, blocked) ⟶ masked_softmax(scores)": "The mask is missing",
        "masked_softmax(scores, blocked) ⟶ masked_softmax(scores.mT, blocked).mT": "wrong axis",
        "masked_softmax(scores, blocked) ⟶ scores": "The softmax is missing",
        "masked_softmax(scores, blocked) ⟶ masked_softmax(scores, None if blocked is None else blocked.T)": "turned over",
        "weights @ v ⟶ weights @ (k if k.shape == v.shape else v)": "mix the keys",
        "weights @ v ⟶ (weights.mT if weights.shape[-1] == weights.shape[-2] else weights) @ v": "weights are transposed",
        "return weights, weights @ v ⟶ return weights @ v, weights": "should be",
        "q @ k.transpose(-2, -1) ⟶ k @ q.transpose(-2, -1)": "",
    },
    "split_join": {
        "x.reshape(n, n_heads, d_model // n_heads).transpose(0, 1) ⟶ x.reshape(n_heads, n, d_model // n_heads)": (
            "cut with reshape or view alone"
        ),
        "x.reshape(n, n_heads, d_model // n_heads).transpose(0, 1) ⟶ x.reshape(n, -1, n_heads).permute(2, 0, 1)": (
            "cut the other way round"
        ),
        "z.transpose(0, 1).reshape(n, n_heads * d_k) ⟶ z.reshape(n, n_heads * d_k)": "joined with reshape or view alone",
        "z.transpose(0, 1).reshape(n, n_heads * d_k) ⟶ z.flip(0).transpose(0, 1).reshape(n, n_heads * d_k)": "another order",
        "z.transpose(0, 1).reshape(n, n_heads * d_k) ⟶ z.transpose(0, 1).reshape(n, n_heads * d_k).T": "axes exchanged",
    },
    "add_norm": {
        "added = x + out ⟶ added = out": "The residual connection is missing",
        "correction=0 ⟶ correction=1": "deviation with n − 1",
        "(added - mean) ⟶ added": "The mean is not taken off before",
        "* gamma + beta ⟶ ": "γ and β are missing",
        "variance + eps ⟶ variance + 1e-5": "ε is 1e-05; here it is 0.05",
        "variance + eps ⟶ variance + 1.0": "ε is 1; here it is",
        "torch.sqrt(variance + eps) ⟶ (torch.sqrt(variance) + eps)": "added to the deviation",
        "torch.sqrt(variance + eps) ⟶ (variance + eps)": "its root belongs there",
        "added.mean(dim=-1, keepdim=True) ⟶ added.mean(dim=0, keepdim=True)\n"
        "added.var(dim=-1, keepdim=True, correction=0) ⟶ added.var(dim=0, keepdim=True, correction=0)": "over the tokens",
        "added = x + out ⟶ added = out\n"
        "return (added - mean) / torch.sqrt(variance + eps) * gamma + beta ⟶ "
        "return x + (added - mean) / torch.sqrt(variance + eps) * gamma + beta": "pre-norm",
        "return (added - mean) / torch.sqrt(variance + eps) * gamma + beta ⟶ return added": "The norm is missing",
        "gamma + beta ⟶ beta + gamma": "γ and β are exchanged",
        "variance + eps ⟶ variance": "ε is left out; here it is 0.05",
        "added = x + out ⟶ added = x\n* gamma + beta ⟶ * gamma + beta + out": "LN(x) + f(x)",
        "mean = added.mean(dim=-1, keepdim=True) ⟶ mean = 0.0\n"
        "variance = added.var(dim=-1, keepdim=True, correction=0) ⟶ variance = added.pow(2).mean(-1)[:, None]": "RMSNorm",
    },
    "feedforward": {
        'torch.relu(x @ w["W_in.weight"].T + w["W_in.bias"]) ⟶ x @ w["W_in.weight"].T + w["W_in.bias"]': (
            "activation function is missing"
        ),
        "torch.relu( ⟶ torch.nn.functional.gelu(": "function is GELU",
        "torch.relu( ⟶ torch.nn.functional.silu(": "function is SiLU",
        'w["W_in.weight"].T + w["W_in.bias"] ⟶ w["W_in.weight"].T': "bias of this matrix is missing",
        'w["W_out.weight"].T + w["W_out.bias"] ⟶ w["W_out.weight"].T': "bias of this matrix is missing",
        'hidden = torch.relu(x @ w["W_in.weight"].T + w["W_in.bias"]) ⟶ hidden = x @ w["W_in.weight"].T + w["W_in.bias"]\n'
        'return hidden @ w["W_out.weight"].T + w["W_out.bias"] ⟶ '
        'return torch.relu(hidden @ w["W_out.weight"].T + w["W_out.bias"])': "comes after the second matrix",
        "torch.relu( ⟶ torch.sigmoid(": "",
        "torch.relu( ⟶ -torch.relu(": "",
        'w["W_in.weight"].T ⟶ w["W_out.weight"]': "",
        'x @ w["W_in.weight"].T ⟶ x @ w["W_in.weight"]': "It raises RuntimeError",
    },
    "cross_attention": {
        "k = split(source ⟶ k = split(x\nv = split(source ⟶ v = split(x": "Keys and values come from the decoder",
        "q = split(x ⟶ q = split(source": "The queries come from the encoder",
        'w["W_Q.weight"].T ⟶ w["W_Q.weight"]': "W is transposed",
        'w["W_V.weight"].T ⟶ w["W_V.weight"]': "W is transposed",
        'w["W_Q.weight"].T + w["W_Q.bias"] ⟶ w["W_Q.weight"].T': "bias of the projection is missing",
        'w["W_V.weight"].T + w["W_V.bias"] ⟶ w["W_V.weight"].T': "bias of the projection is missing",
        'join(z) @ w["W_O.weight"].T + w["W_O.bias"] ⟶ join(z)': "output matrix W_O is missing",
        'join(z) @ w["W_O.weight"].T ⟶ join(z) @ w["W_O.weight"]': "W is transposed",
        "head(q, k, v, blocked) ⟶ head(q, k, v)": "The mask is missing",
        "head(q, k, v, blocked) ⟶ head(k, q, v, blocked)": "",
        "join(z) ⟶ z.reshape(z.shape[1], -1)": "joined with reshape or view alone",
        'w["W_K.weight"] ⟶ w["W_Q.weight"]': "",
    },
    "encoder_layer": {
        'add_and_norm(x, out, w["feedforward_norm.weight"] ⟶ add_and_norm(entering, out, w["feedforward_norm.weight"]\n'
        "weights, out = ⟶ entering = x; weights, out =": "comes from the layer's input",
        'add_and_norm(x, out, w["self_norm.weight"], w["self_norm.bias"]) ⟶ x + out': "The norm is missing",
        'add_and_norm(x, out, w["self_norm.weight"], w["self_norm.bias"]) ⟶ '
        'add_and_norm(0 * x, out, w["self_norm.weight"], w["self_norm.bias"])': "residual connection is missing",
        'w["self_norm.weight"], w["self_norm.bias"] ⟶ w["self_norm.weight"], w["self_norm.bias"], 1.0': "ε is 1; here it is",
        'w["feedforward_norm.weight"], w["feedforward_norm.bias"] ⟶ '
        'w["feedforward_norm.weight"], w["feedforward_norm.bias"], 0.1': "ε is 0.1; here it is",
        'out = feed_forward(x, below(w, "feedforward.")) ⟶ return weights, x': "This sublayer is left out",
        'cross_attention(x, x, below(w, "self_attention."), n_heads) ⟶ '
        'cross_attention(x, x, below(w, "self_attention."), 1)': "shape",
        'x = add_and_norm(x, out, w["self_norm.weight"], w["self_norm.bias"]) ⟶ pass': "This sublayer is left out",
    },
    "decoder_layer": {
        "n_heads, blocked) ⟶ n_heads)": "The mask is missing",
        ".triu(1) ⟶ .tril(-1)": "turned over",
        "blocked = torch ⟶ blocked = ~torch": "read the other way round",
        "cross_attention(x, memory, ⟶ cross_attention(x, x,": "Keys and values come from the decoder",
        "cross_attention(x, memory, ⟶ cross_attention(memory, memory,": "It raises RuntimeError",
        'add_and_norm(x, out, w["cross_norm.weight"] ⟶ add_and_norm(entering, out, w["cross_norm.weight"]\n'
        "n = len(x) ⟶ n, entering = len(x), x": "comes from the layer's input",
        'x = add_and_norm(x, out, w["cross_norm.weight"], w["cross_norm.bias"]) ⟶ pass': "This sublayer is left out",
        "return own, cross, x ⟶ return cross, own, x": "shape",
        "return own, cross, x ⟶ return x": "a tuple is needed",
    },
    "loss": {
        "cross_entropy(logits[real], ⟶ cross_entropy(logits[real].T,": "",
        "cross_entropy(logits[real], ⟶ cross_entropy(2 * logits[real],": "",
        "return F.cross_entropy(logits[real], wanted[real]) ⟶ F.cross_entropy(logits[real], wanted[real])": "nothing (None)",
    },
    "decoding": {
        "** alpha ⟶ * alpha": "",
        "range(longest) ⟶ range(2)": "",
        "cache = [kept[rows] for kept in cache] ⟶ pass": "The cache holds 1 hypotheses, and 2 go on",
        "step(torch.tensor([[ids[-1]] for ids, _ in live]), cache) ⟶ "
        "step(torch.tensor([[start, *ids] for ids, _ in live]), cache)": "only the newest token",
        "return max(scored, key=lambda one: one[1]) ⟶ return max(scored, key=lambda one: one[1])[0]": "a tuple is needed",
    },
    "training": {
        "loss = loss_of() ⟶ loss = loss_of() / 2": "",
        "parameters, 1.0 ⟶ parameters, 5.0": "",
        "return loss.item() ⟶ return loss": "still holds the graph",
        "return loss.item() ⟶ pass": "nothing (None)",
    },
}
