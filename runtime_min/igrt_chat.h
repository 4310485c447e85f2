/*
 * igrt_chat.h - the texts around the turns of a chat, as a model was trained with them.
 *
 *     const igrt_chat_form *f = igrt_chat_form_of(&vocab);
 *
 *     f->system[0] "Be short." f->system[1]    before the first turn, with a system prompt
 *     f->user[0]                               or without one
 *     "Hello" f->user[1]                       a turn: the answer comes behind it
 *     f->between                               before the next turn
 *
 * All up to the answer is one text for igrt_tokenize_typed(), with IGRT_TEXT_CONTROL; what users
 * typed are its typed parts: nobody types a control token. The first one is read with
 * IGRT_TEXT_BEGINS, the others with IGRT_TEXT_GOES_ON. With IGRT_VOCAB_TRIMS white space around
 * what was typed is left out. An answer ends with a token of which igrt_token_ends() is true; that
 * one is not part of it: `between` has it.
 */
#ifndef IGRT_CHAT_H
#define IGRT_CHAT_H

#include "igrt_vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* That of the template in the model's file; without one, of empty texts: the model goes on with
 * what it is told. */
const igrt_chat_form *igrt_chat_form_of(const igrt_vocab *v);

#ifdef __cplusplus
}
#endif
#endif
