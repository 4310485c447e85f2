/* igrt_chat.c - the form of chats, which a vocabulary has. */
#include "igrt_chat.h"

const igrt_chat_form *igrt_chat_form_of(const igrt_vocab *v)
{
    return &v->form;
}
