"""Language models: from text to tokens and back, and chats whose answers come piece by piece."""

import codecs
import ctypes

import numpy as np

from . import abi
from .command import FileError
from .ports import RunError

CONTROL, WHOLE, GOES_ON, BEGINS = 1, 2, 4, 8  # IGRT_TEXT_*
FLAGS, ENDS = 9, 15  # words of a vocabulary: flags, and how many tokens end an answer
TRIMS = 16  # a flag: turns have no white space around them


class Vocabulary:
    """The tokens of a language model.

    v = ingot.Vocabulary(model)
    ids = v.tokens("Hello")             # any str or bytes; what is typed is never a control token
    v.text(ids)                         # "Hello"
    """

    def __init__(self, model):
        table = model._table
        if not table.text:
            raise RunError(f"{model.name}: it has no vocabulary")
        self._calls, self._model = table.text.contents, model
        self._v = abi.Vocab()
        at = self._calls.data
        if self._calls.file:
            path = model._path / self._calls.file.decode()
            try:
                self._bytes = np.fromfile(path, np.uint8)
            except OSError as e:
                raise FileError(f"{path}: {e}") from None
            at = self._bytes.ctypes.data
            if self._bytes.nbytes < self._calls.bytes:
                raise FileError(f"{path}: it is cut off")
        if self._calls.open(ctypes.byref(self._v), at, self._calls.bytes):
            raise FileError(f"{model.name}: its vocabulary is not sound")
        self.ends = set(self._v.ends[: self._v.word[ENDS]])
        self.trims = bool(self._v.word[FLAGS] & TRIMS)
        form = self._calls.form(ctypes.byref(self._v)).contents
        self.system, self.user, self.between = tuple(form.system), tuple(form.user), form.between

    def tokens(self, text, control=False, whole=False, goes_on=False, begins=False):
        """Ids of a text. control: texts of control tokens become them. whole: with the tokens that
        the model wants around a text. begins: with those before it. goes_on: it is the rest of
        one."""
        return self._tokens([(text, False)], control, whole, goes_on, begins)

    def _turn(self, before, typed, goes_on):
        """Ids up to where an answer begins: of (text, whether a user typed it), .. and what a user
        typed last."""
        parts = [*before, (typed, True), (self.user[1], False)]
        return self._tokens(parts, True, False, goes_on, not goes_on)

    def _tokens(self, parts, control, whole, goes_on, begins):
        parts = [(t.encode() if isinstance(t, str) else bytes(t), user) for t, user in parts]
        data, typed = b"", []
        for text, user in parts:
            if user:
                text = text.strip() if self.trims else text
                typed.append(abi.Typed(len(data), len(data) + len(text)))
            data += text
        how = CONTROL * control | WHOLE * whole | GOES_ON * goes_on | BEGINS * begins
        ids = (ctypes.c_int32 * (len(data) + 8))()
        n = self._calls.tokenize_typed(
            ctypes.byref(self._v),
            data,
            len(data),
            how,
            (abi.Typed * len(typed))(*typed),
            len(typed),
            ids,
            len(ids),
        )
        return list(ids[:n])

    def bytes_of(self, token, control=False):
        """What a token stands for."""
        room = ctypes.create_string_buffer(4096)
        n = self._calls.token_text(
            ctypes.byref(self._v), int(token), CONTROL * control, room, len(room)
        )
        return room.raw[:n]

    def text(self, ids, control=False):
        """The text of tokens; bytes that are no UTF-8 are shown as U+FFFD."""
        return b"".join(self.bytes_of(t, control) for t in ids).decode(errors="replace")

    def _sample(self, how, logits, ids):
        """The next token, by logits (which it may change) and the tokens so far."""
        last = (ctypes.c_int32 * len(ids))(*ids)
        return self._calls.sample(
            ctypes.byref(how), logits.ctypes.data, logits.size, last, len(last)
        )


def held(text, stops):
    """How many characters at the end may be the beginning of a stop string."""
    most = max((len(s) for s in stops), default=1) - 1
    for n in range(min(most, len(text)), 0, -1):
        if any(s.startswith(text[-n:]) for s in stops):
            return n
    return 0


class Chat:
    """A conversation with a language model, which holds all of it in its states.

        chat = ingot.Chat(ingot.load("model.gguf"), system="Be short.")
        for piece in chat.say("What is the capital of France?"):
            print(piece, end="", flush=True)

    chat.ids are all tokens so far; chat.vocabulary is the model's. One model has one chat at a time;
    model.clone() makes another one, which shares the weights.
    """

    def __init__(self, model, system=None):
        if len(model.inputs) != 1:
            raise RunError(f"{model.name}: a chat needs a model with one sequence")
        self.model, self.vocabulary, self.system = model, Vocabulary(model), system
        self._chunk = model._in.slots[0][1][0].greatest[0]
        self._decode = model.functions.get("decode")
        self.reset()

    def reset(self):
        """Starts a new conversation."""
        self.model.reset()
        self.ids, self._ran = [], 0

    def _add(self, text, **how):
        self.ids += self.vocabulary.tokens(text, goes_on=bool(self.ids), **how)

    def _catch_up(self):
        """Logits behind all tokens."""
        logits = None
        while self._ran < len(self.ids):
            part = np.array(self.ids[self._ran : self._ran + self._chunk], np.int32)
            one = self._decode if len(part) == 1 and self._decode else self.model
            logits = one(part)
            self._ran += len(part)
        return logits

    def _next(self, how):
        """One more token, or None: the answer is over."""
        logits = self._catch_up()
        token = self.vocabulary._sample(how, np.array(logits, np.float32), self.ids)
        return None if token in self.vocabulary.ends else token

    def say(self, text, **options):
        """A turn of the user; the answer, as complete() gives it."""
        v = self.vocabulary
        before = [(v.between if self.ids else v.user[0], False)]
        if not self.ids and self.system is not None:
            before = [(v.system[0], False), (self.system, True), (v.system[1], False)]
        self.ids += v._turn(before, text, bool(self.ids))
        return self.complete(**options)

    def complete(
        self,
        text=None,
        *,
        tokens=512,
        stop=(),
        temperature=0.0,
        top_k=0,
        top_p=0.0,
        min_p=0.0,
        repeat_penalty=0.0,
        seed=0,
    ):
        """Goes on with what is there, and `text` behind it, piece by piece: a generator of str, whose
        pieces are whole characters. At most so many tokens, until the model ends its turn or one of
        the strings of `stop` comes, which is left out. temperature 0: always the most likely token."""
        if text is not None:
            self._add(text, begins=not self.ids)
        how = abi.Sampling(temperature, top_k, top_p, min_p, repeat_penalty, 0, seed)
        stops = [stop] if isinstance(stop, str) else [s for s in stop if s]
        return self._pieces(how, tokens, stops)

    def _pieces(self, how, tokens, stops):
        decoder, kept = codecs.getincrementaldecoder("utf-8")("replace"), ""
        for _ in range(tokens):
            token = self._next(how)
            if token is None:
                break
            self.ids.append(token)
            kept += decoder.decode(self.vocabulary.bytes_of(token))
            found = [at for at in (kept.find(s) for s in stops) if at >= 0]
            if found:
                if min(found):
                    yield kept[: min(found)]
                return
            ready = len(kept) - held(kept, stops)
            if ready:
                yield kept[:ready]
                kept = kept[ready:]
        kept += decoder.decode(b"", True)
        if kept:
            yield kept
