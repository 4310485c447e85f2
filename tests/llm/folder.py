#!/usr/bin/env python3
"""A folder of Hugging Face is the model that the GGUF file of the same weights is.

    folder.py --ingot build/ingot --logits build/tests/gguf_logits --build build/tests/gguf_build    6 s

    families  of each, a tiny model as a GGUF file in f32 and as a folder: the same logits
    same      two ways in which config.json says the same of rope: the same logits
    several   a bundle for several processors has decode()
    types     --weights-type: the same bytes of weights as a GGUF file quantised by llama.cpp's rules
    text      tokenizer.json (byte-level, SentencePiece): the same vocabulary as the keys of a file
    refused   what is not known, or leads out of the folder, is refused by name
    mutated   config.json, the index, tokenizer.json and safetensors damaged (--count): messages, no crash

Exit status 77, skipped: there is no numpy.
"""

import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import decoder
import gguf_file as gguf
from decoder import FFN, HEAD, HEADS, KV_HEADS, PROMPT, WIDTH, WINDOW

DEFINITIONS = pathlib.Path(__file__).parents[2] / "importers/huggingface/hf_names.def"
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
OLD_BASES = ("rope_theta", "rope_local_base_freq")
# what config.json says beside COMMON
CONFIGS = {
    "llama": {"partial_rotary_factor": 0.5, "rope_scaling": LLAMA3},
    "qwen2": {"tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": 5},
    "qwen3": {
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    },
    "gemma": {"hidden_act": "gelu"},
    "gemma2": {
        "sliding_window": WINDOW,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
        "query_pre_attn_scalar": HEAD,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "sliding_window": WINDOW,
        "sliding_window_pattern": 3,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "rope_theta": 100000.0,
        "rope_local_base_freq": 10000.0,
    },
    "phi3": {
        "sliding_window": WINDOW,
        "tie_word_embeddings": False,
        "original_max_position_embeddings": 32,
    },
    "smollm3": {"no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4},
    "granite": {
        "attention_multiplier": 0.2,
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.5,
        "logits_scaling": 2.0,
    },
}


def config(family):
    return {
        "model_type": family,
        "architectures": ["ForCausalLM"],
        "num_hidden_layers": 4 if family == "smollm3" else decoder.LAYERS,
        "max_position_embeddings": 64,
        "hidden_size": WIDTH,
        "intermediate_size": FFN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000.0,
        "hidden_act": "gelu_pytorch_tanh" if family.startswith("gemma") else "silu",
        "tie_word_embeddings": True,
        "attention_dropout": 0.0,
        **CONFIGS[family],
    }


def llama3_divisors(turned, base=1000.0):
    wave = 2 * np.pi * base ** (np.arange(0, turned, 2) / turned)
    mix = (32 / wave - 1) / 3
    x = np.where(wave < 8, 1, np.where(wave > 32, 8, 1 / ((1 - mix) / 8 + mix)))
    return x.astype(np.float32)


def model(family, words=decoder.WORDS):
    m = decoder.Model(family, 7, words, kinds=("F32",))
    if family == "llama":
        m.tensors["rope_freqs.weight"] = "F32", (16,), llama3_divisors(32).tobytes()
    if family == "phi3":
        m.keys["rope.scaling.attn_factor"] = float(np.sqrt(1 + np.log(2) / np.log(32)))
    return m


# ---- writing -------------------------------------------------------------------------------------


def their_names(family):
    """Rest of a GGUF name -> rest of the folder's."""
    kind = "POST_NAME" if family in ("gemma2", "gemma3") else "PRE_NAME"
    rows = re.findall(r'^(\w+)\("([^"]+)",\s*"([^"]+)"\)', DEFINITIONS.read_text(), re.M)
    names = {ours: theirs for k, theirs, ours in rows if k in ("NAME", kind)}
    if family != "phi3":
        names["ffn_up.weight"] = "mlp.up_proj.weight"
    return names


def halves_first(x, heads, turned):
    """Rows of q or k whose neighbours are turned together, as rows whose halves are."""
    x = x.reshape(heads, HEAD, -1).copy()
    x[:, :turned] = np.concatenate([x[:, 0:turned:2], x[:, 1:turned:2]], 1)
    return x.reshape(heads * HEAD, -1)


def folder_tensors(m):
    names, out = their_names(m.family), {}
    whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    for name, (_, shape, body) in m.tensors.items():
        x = np.frombuffer(body, np.float32).reshape(shape)
        stem = name.rsplit(".", 1)[0]
        if name.startswith("rope_"):
            continue
        if m.facts.get("turns") == "neighbours" and stem.endswith(("attn_q", "attn_k")):
            heads = HEADS if stem.endswith("q") else KV_HEADS
            x = halves_first(x, heads, m.keys.get("rope.dimension_count", HEAD))
        if m.family.startswith("gemma") and "norm" in name:
            x = x - np.float32(1)
        layer = re.match(r"blk\.(\d+)\.(.*)", name)
        if layer:
            name = f"model.layers.{layer[1]}.{names[layer[2]]}"
        else:
            name = whole[stem] + ".weight"
        out[name] = x
    return out


def write_safetensors(path, tensors):
    """name -> f32, or u16: bf16"""
    header, at = {}, 0
    for name, x in tensors.items():
        kind = {2: "BF16", 4: "F32"}[x.itemsize]
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(x).tobytes() for x in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_folder(folder, m, parts=1, **more):
    folder.mkdir()
    facts = {**config(m.family), **more}
    if m.family == "phi3":
        facts["rope_scaling"] = {
            "type": "longrope",
            "long_factor": m.w["rope_factors_long.weight"].tolist(),
            "short_factor": m.w["rope_factors_short.weight"].tolist(),
        }
    (folder / "config.json").write_text(json.dumps(facts))
    tensors = folder_tensors(m)
    if parts == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    where = {}
    for i in range(parts):
        file = f"model-{i + 1:05}-of-{parts:05}.safetensors"
        mine = dict(list(tensors.items())[i::parts])
        write_safetensors(folder / file, mine)
        where.update({name: file for name in mine})
    text = json.dumps({"metadata": {}, "weight_map": where})
    (folder / "model.safetensors.index.json").write_text(text)
    return folder


# ---- the tests -----------------------------------------------------------------------------------


def families(program, work):
    for i, family in enumerate(decoder.FAMILIES):
        m = model(family)
        file = m.write(work / f"{family}.gguf")
        folder = write_folder(work / family, m, parts=1 + i % 3)
        want = decoder.numbers([program, file, *PROMPT])
        got = decoder.numbers([program, folder, *PROMPT])
        error = abs(got - want).max() / np.ptp(want)
        print(f"{family}: {error:.1e} of the range from the file's logits")
        # the same arithmetic of the same numbers; but where a file's neighbours are turned, and not
        # in all of a head or not in all layers, scores are sums in another order
        if error > (2e-5 if m.facts.get("turns") else 0):
            sys.exit(f"{family}: a folder has other logits than the file of the same weights")


def same(program, work):
    """What newer files say where older ones say nothing, or say it elsewhere."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    size = 1 + 0.1 * np.log(4.0)
    small, large = 1 + 0.07 * np.log(4.0), 1 + 0.13 * np.log(4.0)
    in_layers = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 700.0},
    }
    flat = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 5000.0}
    longer = float(np.sqrt(1 + np.log(3.0) / np.log(32)))
    lists = {"long_factor": [1.5] * (HEAD // 2), "short_factor": [1.0] * (HEAD // 2)}
    long = {"type": "longrope", "original_max_position_embeddings": 32, **lists}
    cases = [
        ("qwen3", {"rope_scaling": yarn}, {"rope_scaling": {**yarn, "attention_factor": size}}),
        ("qwen3", {"rope_scaling": yarn}, {"rope_scaling": {**yarn, "truncate": True}}),
        (
            "qwen3",
            {"rope_scaling": {**yarn, "mscale": 0.7, "mscale_all_dim": 1.3}},
            {"rope_scaling": {**yarn, "attention_factor": small / large}},
        ),
        (
            "gemma3",
            {**flat, "rope_local_base_freq": 700.0},
            {"rope_scaling": None, "rope_parameters": in_layers, **dict.fromkeys(OLD_BASES)},
        ),
        (
            "qwen3",
            {"rope_scaling": {**long, "factor": 3.0}},
            {"rope_scaling": {**long, "attention_factor": longer}},
        ),
    ]
    for i, (family, *ways) in enumerate(cases):
        m = model(family)
        one, other = (
            decoder.numbers([program, write_folder(work / f"same{i}{j}", m, **way), *PROMPT])
            for j, way in enumerate(ways)
        )
        plain = decoder.numbers([program, work / family, *PROMPT])
        if abs(one - other).max() > 1e-6 * np.ptp(one):
            sys.exit(f"{family}: {ways[0]} and {ways[1]} are different networks")
        if i > 1 and abs(one - plain).max() < 1e-5 * np.ptp(one):
            sys.exit(f"{family}: {ways[0]} changes nothing")
    print(f"{len(cases)} pairs of config.json are the same network each")


def several_processors(ingot, work):
    """A bundle for several has decode(), too; one for a GPU and a processor has only run()."""
    out = work / "several"
    for target, has in (("c:x86-64-v2,x86-64-v3", True), ("opencl+c", False)):
        command = [ingot, "compile", work / "llama", "-o", out, "--name", "m", "-q"]
        subprocess.run([*command, "--target", target], check=True)
        if ("m_decode(" in (out / "m.h").read_text()) != has:
            sys.exit(f"--target {target}: decode() is {'missing' if has else 'there'}")
    print("bundles for several processors have decode()")


def quantised(x, kind):
    """By llama.cpp's rules; rows of whole blocks."""
    b = x.reshape(-1, 32)
    if kind == "Q8_0":
        d = abs(b).max(1, keepdims=True) / np.float32(127)
    else:
        d = np.take_along_axis(b, abs(b).argmax(1, keepdims=True), 1) / np.float32(-8)
    with np.errstate(divide="ignore"):
        inverse = np.where(d == 0, np.float32(0), np.float32(1) / d)
    scale = d.astype(np.float16).view(np.uint8)
    if kind == "Q8_0":
        y = b * inverse
        q = np.trunc(y + np.copysign(np.float32(0.5), y)).astype(np.int8).view(np.uint8)
    else:
        q = np.trunc(b * inverse + np.float32(8.5)).astype(np.uint8).clip(0, 15)
        q = q[:, :16] | q[:, 16:] << 4
    return np.concatenate([scale, q], 1).tobytes()


def types(ingot, program, work):
    m, folder, errors = model("qwen2"), work / "qwen2", {}
    for kind in ("Q8_0", "Q4_0"):
        t = decoder.Model("qwen2", 7, kinds=("F32",))
        for name, (_, shape, body) in m.tensors.items():
            if len(shape) == 2:
                body = quantised(np.frombuffer(body, np.float32), kind)
                t.tensors[name] = kind, shape, body
        weights = []
        for source, more in (
            (t.write(work / "t.gguf"), []),
            (folder, ["--weights-type", kind.lower()]),
        ):
            out = work / "out"
            command = [ingot, "compile", source, "-o", out, "--name", "m", "-q", *more]
            subprocess.run(command, check=True)
            weights.append((out / "m.weights").read_bytes())
        if weights[0] != weights[1]:
            sys.exit(f"--weights-type {kind.lower()}: other bytes than those of the file")
        print(f"{kind}: the same {len(weights[0])} bytes of weights")
    # embedding and head alone: layers that add nothing
    for name, (kind, shape, body) in m.tensors.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            m.tensors[name] = kind, shape, bytes(len(body))
    folder = write_folder(work / "calm", m)
    exact = decoder.numbers([program, folder, *PROMPT])
    for kind in ("f16", "bf16", "q8_0", "q4_0", "q4_k"):
        got = decoder.numbers([program, "-" + kind, folder, *PROMPT])
        errors[kind] = abs(got - exact).max() / np.ptp(exact)
        print(f"{kind}: {errors[kind]:.1e} of the range from f32")
    most = {"f16": 1e-3, "bf16": 5e-3, "q8_0": 1e-2, "q4_0": 0.15, "q4_k": errors["q4_0"]}
    for kind, error in errors.items():
        if not error < most[kind]:
            sys.exit(f"{kind} loses more than it rounds")


def byte_chars():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) if b in keep else chr(256 + b - sum(k < b for k in keep)) for b in range(256)]


def byte_level():
    """tokenizer.json, tokenizer_config.json and the keys of a file."""
    tokens = ["<|im_start|>", "<|im_end|>", "<tool>", *byte_chars()]
    merges = []
    for pair in ("t h", "th e", "i n", "Ġ a", "Ġ the", "e r", "in g", "0 0"):
        merges.append(pair)
        tokens.append(pair.replace(" ", ""))
    added = [{"id": i, "content": tokens[i], "special": i < 2, "lstrip": False} for i in range(3)]
    words = {"type": "Sequence", "pretokenizers": []}
    words["pretokenizers"] = [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    ]
    vocab = {t: i for i, t in enumerate(tokens) if i > 2}
    tokenizer = {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": words,
        "post_processor": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    chat = "{{ '<|im_start|>' + message }}"
    more = {
        "bos_token": "<|im_start|>",
        "eos_token": {"content": "<|im_end|>", "special": True},
        "add_bos_token": False,
        "chat_template": [{"name": "default", "template": chat}],
    }
    keys = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 4] + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": chat,
    }
    return tokenizer, more, keys


def pieces():
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    parts = ["▁", "t", "h", "e", "a", "n"]
    pairs = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "a"), ("a", "n"), ("▁a", "n")]
    made = ["".join(p) for p in pairs]
    tokens += parts + made
    scores = [-1e9] * (len(tokens) - len(made)) + [float(-i) for i in range(len(made))]
    normal = [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ]
    begin = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}]
    tokenizer = {
        "added_tokens": [{"id": i, "content": tokens[i], "special": True} for i in range(3)],
        "normalizer": {"type": "Sequence", "normalizers": normal},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": begin},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "byte_fallback": True,
            "vocab": {t: i for i, t in enumerate(tokens)},
            "merges": [list(p) for p in pairs],
        },
    }
    keys = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": True,
    }
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}, keys


def vocabulary(ingot, source, work):
    out = work / "out"
    command = [ingot, "compile", source, "-o", out, "--name", "m", "-q"]
    subprocess.run([*command, "--dim", "past=0..8", "--dim", "n=1..2"], check=True)
    return (out / "m.vocab").read_bytes()


def text(ingot, work):
    for name, parts in (("byte_level", byte_level()), ("pieces", pieces())):
        tokenizer, more, keys = parts
        m = model("qwen2", len(keys["tokenizer.ggml.tokens"]) + 2)
        folder = write_folder(work / name, m)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "tokenizer_config.json").write_text(json.dumps(more))
        padded = dict(keys)
        n = len(keys["tokenizer.ggml.tokens"])
        padded["tokenizer.ggml.tokens"] = keys["tokenizer.ggml.tokens"] + [
            f"[PAD{n}]",
            f"[PAD{n + 1}]",
        ]
        padded["tokenizer.ggml.token_type"] = keys["tokenizer.ggml.token_type"] + [5, 5]
        if "tokenizer.ggml.scores" in keys:
            padded["tokenizer.ggml.scores"] = keys["tokenizer.ggml.scores"] + [-1e9, -1e9]
        want = vocabulary(ingot, m.write(work / f"{name}.gguf", **padded), work)
        if vocabulary(ingot, folder, work) != want:
            sys.exit(f"{name}: another vocabulary than that of the file")
        print(f"{name}: the same {len(want)} bytes of vocabulary")


def told(ingot, folder):
    done = subprocess.run([ingot, "check", folder], capture_output=True, text=True)
    if done.returncode < 0:
        sys.exit(f"check {folder}: signal {-done.returncode}")
    return done.returncode, done.stderr + done.stdout


def refused(ingot, work):
    m = model("llama")
    folder = write_folder(work / "refused", m, parts=2)
    good = {f.name: f.read_bytes() for f in folder.iterdir()}
    facts, index = (json.loads(good[n]) for n in ("config.json", "model.safetensors.index.json"))
    where = index["weight_map"]

    def with_facts(**more):
        return {"config.json": json.dumps({**facts, **more}).encode()}

    def with_index(name):
        text = json.dumps({"weight_map": {**where, "model.norm.weight": name}})
        return {"model.safetensors.index.json": text.encode()}

    other = next(n for n in where.values() if n != where["model.norm.weight"])
    cases = [
        (with_facts(model_type="mamba"), "'model_type': models of type 'mamba' are not supported"),
        (with_facts(num_experts=8), "'num_experts': this key is not known"),
        (with_facts(quantization_config={"bits": 4}), "'quantization_config': this key is not"),
        (with_facts(hidden_act="relu"), "'hidden_act': 'relu' is not supported"),
        (with_facts(hidden_size=None), "hidden_size"),
        (with_facts(num_attention_heads="x"), "'num_attention_heads': its value is no number"),
        (with_facts(rope_scaling={"type": "dynamic"}), "'rope_scaling': 'dynamic' is not supp"),
        (
            with_facts(rope_scaling={"type": "yarn", "factor": 4.0, "truncate": False}),
            "'rope_scaling': 'truncate' of type 'yarn' may only be true",
        ),
        (
            with_facts(rope_scaling={"type": "linear", "factor": 4.0, "other": False}),
            "'rope_scaling': 'other' of type 'linear' is not known",
        ),
        (
            with_facts(intermediate_size=128),
            "'model.layers.0.mlp.gate_proj.weight': it is [256,256]",
        ),
        (
            with_facts(num_hidden_layers=4),
            "'model.layers.3.input_layernorm.weight': the file lacks",
        ),
        (with_facts(num_hidden_layers=2), "'model.layers.2.mlp.up_proj.weight': a model of"),
        (with_index("../model.safetensors"), "'../model.safetensors' is no name of a file in"),
        (with_index("/etc/passwd"), "'/etc/passwd' is no name of a file in this folder"),
        (with_index("sub/model.safetensors"), "'sub/model.safetensors' is no name of a file"),
        (with_index("gone.safetensors"), "'gone.safetensors' of it: no such file"),
        ({"config.json": b'{"model_type": "llama", '}, "config.json"),
        ({other: good[other][:-1]}, other),
    ]
    for change, message in cases:
        for name, data in {**good, **change}.items():
            (folder / name).write_bytes(data)
        status, text = told(ingot, folder)
        if status == 0 or message not in text:
            sys.exit(f"'{message}' is not told (status {status}):\n{text}")
    done = subprocess.run(
        [ingot, "check", work / "llama.gguf", "--weights-type", "q8_0"],
        capture_output=True,
        text=True,
    )
    if done.returncode == 0 or "GGUF files have weights in the types" not in done.stderr:
        sys.exit(f"--weights-type of a GGUF file: {done.stderr}")
    print(f"{len(cases) + 1} folders refused by name")


def mutated(program, work, count):
    """Damaged a byte or a piece at a time; the builder's graph is made, not run."""
    rng = random.Random(3)
    source = work / "byte_level"
    folder = work / "mutated"
    folder.mkdir()
    good = {f.name: f.read_bytes() for f in source.iterdir()}
    taken = 0
    for _ in range(count):
        name = rng.choice(list(good))
        data = bytearray(good[name])
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(max(1, min(len(data) - 1, 6000)))  # of safetensors: its header
            what = rng.randrange(4)
            if what == 0:
                data[at] = rng.randrange(256)
            elif what == 1:
                data[at : at + rng.randrange(1, 40)] = b""
            elif what == 2:
                data[at:at] = data[at : at + rng.randrange(1, 40)]
            else:
                data[at : at + 1] = rng.choice((b"[", b"{", b'"', b"-1", b"1e99", b"\\u0000"))
        for n, b in good.items():
            (folder / n).write_bytes(data if n == name else b)
        done = subprocess.run([program, folder], capture_output=True, text=True, errors="replace")
        status = done.stdout.strip().rsplit("= ", 1)[-1]
        taken += status == "0"
        if done.returncode or status in ("98", "99") or done.stderr:
            keep = pathlib.Path(tempfile.mkdtemp(prefix="mutated_"))
            for f in folder.iterdir():
                (keep / f.name).write_bytes(f.read_bytes())
            sys.exit(f"{keep}: status {done.returncode}\n{done.stdout[-800:]}{done.stderr[-2000:]}")
        if status != "0" and "error: " not in done.stdout:
            sys.exit(f"{name}: refused without a message")
    print(f"{count} damaged folders: {taken} taken, the others refused")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--logits", type=pathlib.Path, required=True)
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--count", type=int, default=60)
    a = p.parse_args()
    ingot, logits, build = (x.resolve() for x in (a.ingot, a.logits, a.build))
    with tempfile.TemporaryDirectory() as t:
        work = pathlib.Path(t)
        families(logits, work)
        same(logits, work)
        several_processors(ingot, work)
        types(ingot, logits, work)
        text(ingot, work)
        refused(ingot, work)
        mutated(build, work, a.count)


main()
