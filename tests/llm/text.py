#!/usr/bin/env python3
"""Text becomes the tokens that it should, and they are the text again.

    text.py --tokens build/tests/vocab_tokens --ingot build/ingot     8 s

    pairs    byte-level vocabularies with each rule for words, and one of SentencePiece's, beside a reference here
    bytes    20,000 random ones come back from every vocabulary, as U+FFFD where it lacks them; control tokens are
             none of what is typed
    tables   2,000 mutations of them
    chat     a tiny seeded model answers with the tokens that numpy says, from `ingot chat` and from one
             static program of examples/chat, which has nothing beside it; `ingot bench` of it; ingot.Chat of Python

    --vocabs DIR   also the pairs of files there: X.gguf, X.gguf.inp, X.gguf.out, as llama.cpp has them in models/
    --noise N      N million bytes come back from each of these, half of them random ones, half of them Unicode's

Exit status 77, skipped: there is no numpy.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata

try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import decoder
import gguf_file as gguf

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WORDS = "the of and to in is that it was for on as with his he be at by had 19 20 2000 don't they're I'll we'd new\n\n \t  é ü".split(
    " "
)
TEXTS = [
    "The cat's 2000 naps, they're 19 and I'LL be there",
    "  two spaces,\tthen a tab\n\nand\r\nlines   \n  x ",
    "élan über straße 東京タワー привет 12345 ½ Ⅷ ١٢٣",
    "",
    " ",
    "\n",
    "a  b   c    ",
    "...!!! (what?) [1]\n\n\n---",
    "'s'S 're'RE don't",
    "<|im_end|> is text here",
    "mixed1letters2and3digits 4 5",
    "🙂🙃 e\u0301 \u00a0 \u3000 x",
    "the" * 300,
    "CamelCase HTTPServer McDonald's ABC'S ÉA éA a/b//\n/東A A東a",
    "हिन्दी a\u0301b $5.00 +1 <a> 12345678 x1234; 、。「東京」 한국 'quoted' \u2018q\u2019 «é» ª\u3000東\u3000 \n  \t ",
]
RULES = (
    "gpt-2 smollm llama-bpe qwen2 tekken gpt-4o qwen35 falcon deepseek-coder deepseek-llm".split()
)
SPACE = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def byte_chars():
    """GPT-2's character of each byte."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [
        chr(b) if b in seen else chr(256 + sum(c not in seen for c in range(b))) for b in range(256)
    ]


def kind(text, category):
    """A set of the characters of a category that are in the text."""
    found = {re.escape(c) for c in text if unicodedata.category(c)[0] == category}
    return "".join(sorted(found)) or "\ue000"


def cut(text, *patterns):
    """What the first one finds is cut out, and the next one looks into all pieces that there are then."""
    pieces = [text]
    for p in patterns:
        pieces = [w for piece in pieces for w in re.split(f"({p})", piece) if w]
    return pieces


def words(text, rule):
    letter, digit, mark, point = (kind(text, c) for c in "LNMP")
    other = f"[^{SPACE[1:-1]}{letter}{digit}]"
    spaces = f"{SPACE}+(?!{SPACE[0]}^{SPACE[1:]})|{SPACE}+"
    gpt2 = f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letter}]+| ?[{digit}]+| ?{other}+|{spaces}"
    if rule == "gpt-2":
        return cut(text, gpt2)
    if rule == "smollm":
        return cut(text, f"[{digit}]", gpt2)
    if rule == "falcon":
        return cut(text, f"[{point}$+<=>^~|`]+", gpt2, "[0-9][0-9][0-9]")
    asia = "[\u0801-\u167f\u1681-\u1fff\u206f-\u2fff\u3001-\u9fa5\uac00-\ud7ff]+"
    if rule == "deepseek-coder":
        first = ("[\r\n]", f"{SPACE}?[{letter}]+", f"{SPACE}?[{point}]+")
        return cut(text, *first, asia, f"[{digit}]")
    if rule == "deepseek-llm":
        cased = "".join(c for c in letter if unicodedata.category(c) in ("Lu", "Ll", "Lt"))
        signs = "!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001\u3002"
        first = ("[\r\n]", f"{SPACE}?[{cased or 'A'}]+", f"{SPACE}?[{signs}]+", f"{SPACE}+\\Z")
        return cut(text, *first, asia, f"[{digit}]+")
    if rule == "qwen35":
        letter += mark
        other = f"[^{SPACE[1:-1]}{letter}{digit}]"
    digits = "{1,3}" if rule in ("llama-bpe", "gpt-4o") else ""
    if rule in ("gpt-4o", "tekken"):
        first, rest = f"(?:(?![a-z])[{letter}])", f"(?:(?![A-Z])[{letter}])"
        ends = "(?:'[sStTmMdD]|'(?:[rR][eE]|[vV][eE]|[lL][lL]))?" if rule == "gpt-4o" else ""
        before = f"[^\r\n{letter}{digit}]?"
        return cut(
            text,
            f"{before}{first}*{rest}+{ends}|{before}{first}+{rest}*{ends}|[{digit}]{digits}"
            f"| ?{other}+[\r\n/]*|{SPACE}*[\r\n]+|{spaces}",
        )
    return cut(
        text,
        f"'[sStTmMdD]|'(?:[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n{letter}{digit}]?[{letter}]+|[{digit}]{digits}"
        f"| ?{other}+[\r\n]*|{SPACE}*[\r\n]+|{spaces}",
    )


class Bytes:
    """A byte-level vocabulary: 256 bytes, and merges that make some words. Of valid text: without the bytes that
    are in none, whose place is a control token's."""

    def __init__(self, rule, valid=False):
        self.rule, chars = rule, byte_chars()
        never = [0xC0, 0xC1, 0xF1, *range(0xF5, 256)] if valid else []
        self.tokens, self.merges = SPECIALS + [c for b, c in enumerate(chars) if b not in never], []
        for word in WORDS:
            for w in ("".join(chars[b] for b in s.encode()) for s in (word, " " + word)):
                left = w[:1]
                for c in w[1:]:
                    if left + c not in self.tokens:
                        self.merges.append((left, c))
                        self.tokens.append(left + c)
                    left += c
        self.id = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.chars = chars
        self.keys = {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": rule,
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": [3] * len(SPECIALS)
            + [1] * (len(self.tokens) - len(SPECIALS)),
            "tokenizer.ggml.merges": [" ".join(m) for m in self.merges],
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.chat_template": CHAT,
            "tokenizer.ggml.add_bos_token": False,
        }
        if valid:
            self.keys["tokenizer.ggml.unknown_token_id"] = 0

    def ids(self, text):
        out = []
        for word in words(text, self.rule):
            s = [self.chars[b] for b in word.encode()]
            if self.rule in ("llama-bpe", "tekken") and "".join(s) in self.id:
                s = ["".join(s)]
            while len(s) > 1:
                ranks = [self.rank.get(pair, 1 << 30) for pair in zip(s, s[1:])]
                best = min(range(len(ranks)), key=ranks.__getitem__)
                if ranks[best] == 1 << 30:
                    break
                s[best : best + 2] = [s[best] + s[best + 1]]
            out += [self.id[t] for t in s]
        return out


class Pieces:
    """A vocabulary of SentencePiece: bytes for what is not known, pieces with scores."""

    rule = "pieces"

    def __init__(self):
        self.tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        pieces = []
        for word in WORDS[:15]:
            for w in (word, "\u2581" + word):
                pieces += [w[:n] for n in range(1, len(w) + 1)]
        pieces = [p for p in dict.fromkeys(pieces) if p] + ["\u2581\u2581"]
        self.tokens += pieces
        self.id = {t: i for i, t in enumerate(self.tokens)}
        scores = [0.0] * 259 + [-float(i) for i in range(len(pieces))]
        self.score = dict(zip(self.tokens, scores))
        self.keys = {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.scores": scores,
            "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * len(pieces),
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
        }

    def ids(self, text):
        s = list((" " + text).replace(" ", "\u2581")) if text else []
        while True:
            scores = [self.score.get(a + b) if a + b in self.id else None for a, b in zip(s, s[1:])]
            known = [i for i, x in enumerate(scores) if x is not None]
            if not known:
                break
            best = max(known, key=lambda i: (scores[i], -i))
            s[best : best + 2] = [s[best] + s[best + 1]]
        out = []
        for t in s:
            out += (
                [self.id[t]] if t in self.id else [3 + b for b in t.replace("\u2581", " ").encode()]
            )
        return out


def tokens(program, path, texts, flags=0):
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    done = subprocess.run([str(program), str(path), str(flags)], input=data, capture_output=True)
    if done.returncode:
        sys.exit(f"{path.name}: status {done.returncode}\n{done.stderr.decode()}")
    return [[int(x) for x in line.split()] for line in done.stdout.decode().splitlines()]


def pairs(program, folder):
    rng = random.Random(1)
    noise = [bytes(rng.randrange(256) for _ in range(5000)) for _ in range(2)]
    noise += [
        "".join(
            chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xA0, 0x3000)]))
            for _ in range(4000)
        ).encode()
    ]
    for v in [*map(Bytes, RULES), Bytes("smollm", valid=True), Pieces()]:
        path = folder / f"{v.rule}.gguf"
        gguf.write(path, v.keys, {})
        for text, got in zip(TEXTS, tokens(program, path, [t.encode() for t in TEXTS])):
            if got != v.ids(text):
                sys.exit(f"{v.rule}: {text!r:.200}: {got}, and it should be {v.ids(text)}"[:2000])
        tokens(program, path, noise)
        control = tokens(program, path, [b"a<|im_end|>b"], 1)[0]
        typed = tokens(program, path, [b"a<|im_end|>b"])[0]
        if v.rule != "pieces" and (2 not in control or 2 in typed):
            sys.exit(f"{v.rule}: control tokens: {control}, as text {typed}")
        subprocess.run(
            [str(program), str(path), "mutate", "400"], check=True, stdout=subprocess.DEVNULL
        )
        print(f"{v.rule}: {len(TEXTS)} texts, {sum(map(len, noise))} random bytes")


def chat(ingot, folder):
    v = Bytes("smollm")
    m = decoder.Model("llama", 3, words=len(v.tokens))
    path = m.write(folder / "chat.gguf", **v.keys)
    ids = [1] + v.ids("user\n") + v.ids("the cat") + [2] + v.ids("\n") + [1] + v.ids("assistant\n")
    prompt, want = list(ids), []
    for _ in range(6):
        logits = m.logits(ids)[-1]
        first, second = np.sort(logits)[-1:-3:-1]
        assert first - second > 1e-3 * (first - logits.min()), "the best two are too near"
        want.append(int(logits.argmax()))
        ids.append(want[-1])
    command = [ingot, "chat", path, "--prompt", "the cat", "--ids", "--tokens", len(want), "-q"]
    env = os.environ | {"INGOT_CACHE": str(folder / "cache")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
    got = [int(x) for x in done.stdout.split()]
    if done.returncode or got != want:
        sys.exit(f"chat: status {done.returncode}: {got}, and it should be {want}\n{done.stderr}")
    print(f"chat: {got}")
    program(ingot, folder, path, command[3:-1], want)
    bench(ingot, path, env)
    python(ingot, folder, path, v, prompt, want)


def program(ingot, folder, model, options, want):
    """examples/chat by make; only what was linked is left of it."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/chat"
    made = folder / "program"
    given = [f"GGUF={model}", f"INGOT={ingot}", f"OUT={made}", "TARGET=c", "CFLAGS=-O0"]
    done = subprocess.run(
        ["make", "-s", "-j2", "-C", example, *given], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"examples/chat: status {done.returncode}\n{done.stderr}")
    (made / "chat").rename(folder / "alone")
    shutil.rmtree(made)
    for threads in "1", "2":
        command = [str(c) for c in [folder / "alone", "-t", threads, *options]]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        got = [int(x) for x in done.stdout.split()]
        if done.returncode or got != want:
            sys.exit(f"examples/chat: status {done.returncode}: {got}, not {want}\n{done.stderr}")


def python(ingot, folder, model, v, prompt, want):
    """ingot.Chat: the same tokens, their texts piece by piece, stop strings, and a second turn."""
    os.environ["INGOT"] = str(ingot)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "compiler/tools/python"))
    import ingot as package

    package.compile(model, folder / "python", target="c", name="model")
    chat = package.Chat(package.Model(folder / "python", cflags="-O0"))
    pieces = list(chat.say("the cat", tokens=len(want)))
    if chat.ids != prompt + want or "".join(pieces) != chat.vocabulary.text(want):
        sys.exit(f"ingot.Chat: {chat.ids}, {pieces}, not {prompt + want}")
    if chat.vocabulary.tokens("the cat<|im_end|>") != v.ids("the cat<|im_end|>"):
        sys.exit("ingot.Vocabulary: a control token was typed")
    whole, second = "".join(pieces), list(chat.say("of it", tokens=1))
    if len(chat.ids) <= len(prompt + want) + 1 or len(second) > 1:
        sys.exit(f"ingot.Chat: a second turn: {chat.ids}")
    for stop in (whole[2:4], whole[-1], "never"):
        chat.reset()
        got = "".join(chat.say("the cat", tokens=len(want), stop=["never too", stop]))
        if got != whole.split(stop)[0]:
            sys.exit(f"ingot.Chat: {got!r}, which should end before {stop!r} of {whole!r}")
    print(f"python: {pieces}")
    cpp(folder / "python", pieces, whole[2:4])


CPP = r"""
#include "model_igrt.h"

#include "igrt_chat.hpp"
#include "model.hpp"

#include <cstdlib>
#include <iostream>

int main(int, char **argv) /* MODEL.weights MODEL.vocab TOKENS STOP */
{
    model::model net(igrt::load(argv[1]));
    const igrt::memory vocabulary = igrt::load(argv[2]);
    igrt::chat<model::model, model::inputs, model::outputs, DECODE> chat(
        net, vocabulary, model::input_size::ids, model::output_size::logits);
    igrt::chat_options how;
    how.tokens = static_cast<std::size_t>(std::atoi(argv[3]));
    const auto show = [](std::string_view piece) { std::cout << piece << '|'; return true; };
    chat.say("the cat", how, show);
    how.stop = {"never", argv[4]};
    chat.reset();
    std::cout << '\n';
    chat.say("the cat", how, show);
    std::cout << '\n';
    chat.say("of it", how, show);
    return chat.ids().size() > 20 ? 0 : 1;
}
"""


def cpp(bundle, pieces, stop):
    """igrt_chat.hpp gives the same pieces, with run() alone and with decode()."""
    compiler = os.environ.get("CXX", "c++").split()
    if not shutil.which(compiler[0]):
        return print("C++: skipped, there is no compiler")
    library = next(bundle.glob("lib*.so"))
    (bundle / "try.cpp").write_text(CPP)
    for decode in ("void, void", "model::decode_inputs, model::decode_outputs"):
        flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-DDECODE={decode}"]
        flags += [f"-I{bundle}", str(bundle / "try.cpp"), str(library), f"-Wl,-rpath,{bundle}"]
        subprocess.run([*compiler, *flags, "-o", str(bundle / "try")], check=True)
        given = [bundle / "model.weights", bundle / "model.vocab", len(pieces), stop]
        done = subprocess.run(
            [str(bundle / "try"), *map(str, given)], stdout=subprocess.PIPE, text=True
        )
        first, second, *_ = done.stdout.replace("|\n", "\n").split("\n") + [""]
        until = "".join(pieces).split(stop)[0]
        if done.returncode or first.split("|") != pieces or second.replace("|", "") != until:
            sys.exit(f"igrt_chat.hpp: status {done.returncode}: {done.stdout!r}, not {pieces}")
    print("C++: the same")


def bench(ingot, model, env):
    """Both rates, and bytes of a token: those of all weights, but for the table of embeddings."""
    command = [str(c) for c in [ingot, "bench", model, "--seconds", 0, "-q"]]
    told = subprocess.run([*command, "--json"], capture_output=True, text=True, env=env)
    line = subprocess.run(command, capture_output=True, text=True, env=env)
    if told.returncode or line.returncode or "tg8 " not in line.stdout:
        sys.exit(f"bench: status {told.returncode}, {line}\n{told.stderr}")
    r = json.loads(told.stdout)
    size = next((model.parent / "cache").glob("*/model.weights")).stat().st_size
    good = r["tokens"] == 8 and r["prompt_tokens_per_second"] > 0 and r["threads"] == 1
    good &= r["answer_tokens_per_second"] > 0 and 0.5 * size < r["weight_bytes_per_token"] < size
    if not good or ("read_percent" in r) != (r["read_bytes_per_second"] > 0):
        sys.exit(f"bench: {told.stdout}")
    print(f"bench: {line.stdout.strip()}")


def noise_of(millions):
    """Random bytes, and as many of random characters of all planes, in texts of 100,000."""
    rng = random.Random(5)
    planes = [
        (0x20, 0x7F),
        (0xA0, 0x3000),
        (0x3000, 0xD800),
        (0xE000, 0x10000),
        (0x10000, 0x110000),
    ]
    for _ in range(millions * 5):
        yield rng.randbytes(100000)
        made = (chr(rng.randrange(*rng.choice(planes))) for _ in range(40000))
        yield "".join(made).encode()[:100000]


def vocabularies(program, folder, millions):
    noise = list(noise_of(millions))
    separator = b"\n__ggml_vocab_test__\n"
    for path in sorted(folder.glob("*.gguf.inp")):
        model = path.with_suffix("")
        texts = path.read_bytes().split(separator)
        want = [
            [int(x) for x in line.split()]
            for line in path.with_suffix(".out").read_text().splitlines()
        ]
        data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
        done = subprocess.run(
            [str(program), str(model), "0"], input=data, capture_output=True, text=False
        )
        if done.returncode == 4:
            print(f"{model.name}: refused: {done.stderr.decode().strip()}")
            continue
        got = [[int(x) for x in line.split()] for line in done.stdout.decode().splitlines()]
        right = sum(a == b for a, b in zip(got, want))
        tokens(program, model, noise)
        print(f"{model.name}: {right} of {len(want)}, {sum(map(len, noise))} bytes come back")
        if done.returncode or right < len(want):
            sys.exit(
                f"{model.name}: status {done.returncode}, {right} of {len(want)} texts are right"
            )


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tokens", type=pathlib.Path, required=True)
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--vocabs", type=pathlib.Path)
    p.add_argument("--noise", type=int, default=1)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        pairs(a.tokens.resolve(), folder)
        if a.vocabs:
            vocabularies(a.tokens.resolve(), a.vocabs, a.noise)
        chat(a.ingot.resolve(), folder)


if __name__ == "__main__":
    main()
