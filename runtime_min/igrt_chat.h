/*
 * igrt_chat.h - the texts around the turns of a chat, as a model was trained with them.
 *
 *     const igrt_chat_form *f = igrt_chat_form_of(&vocab);
 *
 *     tokens of: "" (IGRT_TEXT_WHOLE)                  before all else
 *                f->system[0] "Be short." f->system[1]  if there is a system prompt
 *                f->user[0] "Hello" f->user[1]          the answer comes behind them
 *                f->between                             before the next turn of the user
 *
 * The texts of a form are read with IGRT_TEXT_CONTROL, what is between them without: nobody types a
 * control token. All but the first are read with IGRT_TEXT_GOES_ON.
 */
#ifndef IGRT_CHAT_H
#define IGRT_CHAT_H

#include "igrt_vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct igrt_chat_form {
    const char *system[2], *user[2]; /* before and after */
    const char *between;             /* after an answer */
} igrt_chat_form;

/* That of the template in the model's file; without one, of empty texts: the model goes on with
 * what it is told. */
const igrt_chat_form *igrt_chat_form_of(const igrt_vocab *v);

#ifdef __cplusplus
}
#endif
#endif
