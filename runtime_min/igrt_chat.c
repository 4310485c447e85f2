/* igrt_chat.c - forms of chats, by the numbers that a vocabulary has (gguf_vocab.h). */
#include "igrt_chat.h"

static const igrt_chat_form forms[] = {
    {{"", ""}, {"", ""}, ""}, /* none: the model goes on with what is typed */
    {{"<|im_start|>system\n", "<|im_end|>\n"},
     {"<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"},
     "<|im_end|>\n"},
    {{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>user<|end_header_id|>\n\n",
      "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
     "<|eot_id|>"},
    {{"<start_of_turn>user\n", "<end_of_turn>\n"},
     {"<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"},
     "<end_of_turn>\n"},
    {{"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n<|assistant|>\n"}, "<|end|>\n"},
    {{"[INST] ", " [/INST]</s>"}, {"[INST] ", " [/INST]"}, "</s>"},
    {{"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
     {"<|start_of_role|>user<|end_of_role|>",
      "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
     "<|end_of_text|>\n"},
};

const igrt_chat_form *igrt_chat_form_of(const igrt_vocab *v)
{
    const uint32_t form = v->word[IGRT_VOCAB_CHAT];
    return &forms[form < sizeof forms / sizeof *forms ? form : 0];
}
